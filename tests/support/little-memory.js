/**
 * For what is tried where memory is short: the library's cores can have no more than so much
 * memory. In WebAssembly that is the maximum that a module names; where the core is JavaScript,
 * larger buffers cannot be had.
 */
const PAGES = 7;
const PAGE = 65_536;
const MEMORY = 5; // the section of a module

/**
 * Reads an unsigned LEB128.
 * @param {Uint8Array} bytes
 * @param {number} at
 * @returns {[value: number, end: number]}
 */
function read(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value |= (byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
}

/** @param {Uint8Array} bytes of a module; its memory's maximum is changed in place */
function limit(bytes) {
  for (let at = 8; at < bytes.length;) {
    const [length, start] = read(bytes, at + 1);
    if (bytes[at] === MEMORY) {
      // After how many memories there are, and that it has a maximum.
      const [, maximum] = read(bytes, start + 2);
      const [, end] = read(bytes, maximum);
      for (let i = maximum; i < end; i++)
        bytes[i] = (i === maximum ? PAGES : 0) | (i < end - 1 ? 128 : 0);
      return bytes;
    }
    at = start + length;
  }
  throw new Error('the module has no memory');
}

/** Before the library is imported. */
export function limitMemory() {
  if (globalThis.WebAssembly) {
    WebAssembly.compileStreaming = async (source) => {
      const bytes = new Uint8Array(await (await source).arrayBuffer());
      return WebAssembly.compile(limit(bytes));
    };
    return;
  }
  const { ArrayBuffer } = globalThis;
  globalThis.ArrayBuffer = class extends ArrayBuffer {
    /** @param {number} length */
    constructor(length) {
      if (length > PAGES * PAGE) throw new RangeError('Array buffer allocation failed');
      super(length);
    }
  };
}
