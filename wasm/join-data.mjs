import { withSections, written } from './read-module.mjs';

const [DATA, DATA_COUNT] = [11, 12];

/**
 * Joins a module's constants to one segment. The linker leaves out the zeros between them, so there
 * are dozens of segments; but after compression, the head of a segment takes more bytes than the
 * zeros before it.
 * @param {Buffer} wasm
 * @returns {Buffer}
 */
export const withJoinedData = (wasm) =>
  withSections(wasm, {
    [DATA]: (reader) => [...written(1), ...joined(reader)],
    [DATA_COUNT]: () => written(1),
  });

/** @typedef {import('./read-module.mjs').ModuleReader} ModuleReader */

/**
 * @param {ModuleReader} reader at the start of the segments: active ones, in the order of their
 *   addresses
 */
function joined(reader) {
  const count = reader.number();
  const { head, address: first } = headOf(reader);
  const bytes = [...reader.bytes()];
  for (let i = 1; i < count; i++) {
    const { address } = headOf(reader);
    const gap = address - first - bytes.length;
    if (gap < 0) throw new Error('the segments of the data are not in order');
    bytes.push(...new Uint8Array(gap), ...reader.bytes());
  }
  return [...head, ...written(bytes.length), ...bytes];
}

/**
 * Reads the head of a segment: its flags, which are 0, and its address, an i32.const between 0 and
 * 2^31. @param {ModuleReader} reader
 */
function headOf(reader) {
  const from = reader.at;
  const [flags, constant, address, end] = [
    reader.byte(),
    reader.byte(),
    reader.number(),
    reader.byte(),
  ];
  if (flags !== 0 || constant !== 0x41 || end !== 0x0b)
    throw new Error('a segment of the data is not at a constant address');
  return { head: reader.wasm.subarray(from, reader.at), address };
}
