// Writes the module as a JavaScript module: text that every bundler, page and CSP takes, and that compiles
// without waiting for the network.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { deflateRawSync } from 'node:zlib';

const [, , from, to] = process.argv;
const wasm = readFileSync(from);
mkdirSync(dirname(to), { recursive: true });
// Base64 of compressed bytes costs a download what the bytes cost; of the bytes themselves, a third more.
const deflated = deflateRawSync(wasm, { level: 9 });
writeFileSync(
  to,
  `// Made by the build from src/ and wasm/: the core, deflated, in base64.\nexport default '${deflated.toString('base64')}';\n`,
);
console.log(`core: ${wasm.length} bytes, ${deflated.length} deflated`);
