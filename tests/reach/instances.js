// Counts the instances of WebAssembly, so that a test can tell whether the core is one. Imported
// before the package.
const { Instance } = WebAssembly;
globalThis.instances = 0;
WebAssembly.Instance = class extends Instance {
  constructor(...args) {
    super(...args);
    globalThis.instances++;
  }
};
