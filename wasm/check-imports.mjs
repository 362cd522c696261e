// Fails the build when the module asks for more than the one documented import, or when an export
// takes or gives an i64, which JavaScript would have to pass as a BigInt.
import { readFileSync } from 'node:fs';

const I64 = 0x7e;
const [TYPE, FUNCTION, EXPORT] = [1, 3, 7];
const wasm = readFileSync(process.argv[2]);
const faults = [];

const imports = WebAssembly.Module.imports(new WebAssembly.Module(wasm));
for (const { module, name } of imports) {
  if (module !== 'env' || name !== 'emscripten_notify_memory_growth')
    faults.push(`imports ${module}.${name}`);
}

let at = 8; // after the magic number and the version
const number = () => {
  for (let value = 0, shift = 0; ; shift += 7) {
    const byte = wasm[at++];
    value |= (byte & 127) << shift;
    if (byte < 128) return value >>> 0;
  }
};
const bytes = () => {
  const length = number();
  return wasm.subarray(at, (at += length));
};
const list = (read) => Array.from({ length: number() }, read);

let types = [];
const functions = imports.filter((i) => i.kind === 'function').map(() => -1); // imports come first
while (at < wasm.length) {
  const section = wasm[at++];
  const end = number() + at;
  if (section === TYPE) types = list(() => (at++, [...bytes(), ...bytes()]));
  if (section === FUNCTION) list(() => functions.push(number()));
  if (section === EXPORT)
    list(() => {
      const name = bytes().toString();
      const isFunction = wasm[at++] === 0;
      const type = types[functions[number()]] ?? [];
      if (isFunction && type.includes(I64)) faults.push(`exports ${name} with an i64`);
    });
  at = end;
}

if (faults.length) {
  console.error(`the module ${faults.join(', ')}: see check-imports.mjs`);
  process.exit(1);
}
