/**
 * Encodes an unsigned number as in a module, with seven bits in each byte.
 * @param {number} value
 * @returns {number[]}
 */
export const written = (value) =>
  value < 128 ? [value] : [(value & 127) | 128, ...written(value >>> 7)];

/** Reads a WebAssembly module, beginning at its first section. */
export class ModuleReader {
  at = 8; // after the magic number and the version

  /** @param {Uint8Array} wasm */
  constructor(wasm) {
    this.wasm = wasm;
  }

  /** Its sections. Each can be read from the start of its body to its end. */
  *sections() {
    while (this.at < this.wasm.length) {
      const from = this.at;
      const id = this.byte();
      const end = this.number() + this.at;
      yield { id, from, end };
      this.at = end;
    }
  }

  byte() {
    return this.wasm[this.at++];
  }

  /** An unsigned number, with seven bits in each byte. */
  number() {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = this.byte();
      value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
    }
  }

  /** Bytes after their number. */
  bytes() {
    const length = this.number();
    return this.wasm.subarray(this.at, (this.at += length));
  }

  text() {
    return Buffer.from(this.bytes()).toString();
  }

  /**
   * A list after its length.
   * @template T
   * @param {() => T} read
   */
  list(read) {
    return Array.from({ length: this.number() }, read);
  }
}

/**
 * A module with changed sections.
 * @param {Uint8Array} wasm
 * @param {Record<number, (reader: ModuleReader) => number[]>} changes functions that return the new
 *   bodies of sections, by the sections' numbers
 * @returns {Buffer<ArrayBuffer>}
 */
export function withSections(wasm, changes) {
  const reader = new ModuleReader(wasm);
  const parts = [wasm.subarray(0, reader.at)];
  for (const { id, from, end } of reader.sections()) {
    const body = changes[id]?.(reader);
    parts.push(
      body ? Buffer.from([id, ...written(body.length), ...body]) : wasm.subarray(from, end),
    );
  }
  return Buffer.concat(parts);
}
