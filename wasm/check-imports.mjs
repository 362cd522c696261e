// Fails the build when the module imports more than the one documented function, or when an export
// takes or returns an i64, which JavaScript would have to pass as a BigInt.
import { readFileSync } from 'node:fs';
import { ModuleReader } from './read-module.mjs';

const I64 = 0x7e;
const [TYPE, FUNCTION, EXPORT] = [1, 3, 7];
const wasm = readFileSync(process.argv[2]);
const faults = [];

const imports = WebAssembly.Module.imports(new WebAssembly.Module(wasm));
for (const { module, name } of imports) {
  if (module !== 'env' || name !== 'emscripten_notify_memory_growth')
    faults.push(`imports ${module}.${name}`);
}

const reader = new ModuleReader(wasm);
let types = [];
const functions = imports.filter((i) => i.kind === 'function').map(() => -1); // imports come first
for (const { id } of reader.sections()) {
  if (id === TYPE)
    types = reader.list(() => (reader.byte(), [...reader.bytes(), ...reader.bytes()]));
  if (id === FUNCTION) reader.list(() => functions.push(reader.number()));
  if (id === EXPORT)
    reader.list(() => {
      const name = reader.text();
      const isFunction = reader.byte() === 0;
      const type = types[functions[reader.number()]] ?? [];
      if (isFunction && type.includes(I64)) faults.push(`exports ${name} with an i64`);
    });
}

if (faults.length) {
  console.error(`the module ${faults.join(', ')}: see check-imports.mjs`);
  process.exit(1);
}
