// node --import ./tests/support/no-wasm.js: what runs after it finds no WebAssembly, as in pages that forbid it.
delete globalThis.WebAssembly;
