// Checks what the module asks of its surroundings, and writes it as a JavaScript module: text that every
// bundler, page and CSP takes, and that compiles without waiting for the network.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { deflateRawSync } from 'node:zlib';

const [, , from, to] = process.argv;
const wasm = readFileSync(from);
const imports = WebAssembly.Module.imports(new WebAssembly.Module(wasm)).map((i) => i.name);
const strangers = imports.filter((name) => name !== 'emscripten_notify_memory_growth');
if (strangers.length) {
  console.error(
    `the core must not need anything from outside, but imports ${strangers.join(', ')}`,
  );
  process.exit(1);
}
mkdirSync(dirname(to), { recursive: true });
// Base64 of compressed bytes costs a download what the bytes cost; of the bytes themselves, a third more.
const deflated = deflateRawSync(wasm, { level: 9 });
writeFileSync(
  to,
  `// Made by the build from src/ and wasm/: the core, deflated, in base64.\nexport default '${deflated.toString('base64')}';\n`,
);
console.log(`core: ${wasm.length} bytes, ${deflated.length} deflated`);
