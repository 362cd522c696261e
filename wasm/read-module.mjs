/**
 * An unsigned number as a module has it, seven bits a byte.
 * @param {number} value
 * @returns {number[]}
 */
export const written = (value) =>
  value < 128 ? [value] : [(value & 127) | 128, ...written(value >>> 7)];

/** Reads a WebAssembly module from its first section on. */
export class ModuleReader {
  at = 8; // after the magic number and the version

  /** @param {Uint8Array} wasm */
  constructor(wasm) {
    this.wasm = wasm;
  }

  get done() {
    return this.at >= this.wasm.length;
  }

  byte() {
    return this.wasm[this.at++];
  }

  /** An unsigned number, seven bits a byte. */
  number() {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = this.byte();
      value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
    }
  }

  /** Bytes behind their number. */
  bytes() {
    const length = this.number();
    return this.wasm.subarray(this.at, (this.at += length));
  }

  text() {
    return Buffer.from(this.bytes()).toString();
  }
}
