// Writes the core as JavaScript modules: the WebAssembly as text that every bundler and page takes and that
// compiles without waiting for the network, and what wasm2js made of it for pages that forbid WebAssembly.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import zopfli from '@gfx/zopfli';

const [, , wasmFile, jsFile, folder, name] = process.argv;
mkdirSync(folder, { recursive: true });

const wasm = readFileSync(wasmFile);
// Base64 of compressed bytes costs a download what the bytes cost; of the bytes themselves, a third more.
// Zopfli makes a twentieth less of them than zlib does.
const deflated = Buffer.from(await zopfli.deflateAsync(wasm));
writeFileSync(
  `${folder}/${name}-wasm.js`,
  `// Made by the build from src/ and wasm/: the core, deflated, in base64.
/** @type {string} */
export default '${deflated.toString('base64')}';
`,
);

// wasm2js makes a module with one instance in it; a function around it makes as many as are wanted.
const js = readFileSync(jsFile, 'utf8');
const body = js.slice(
  js.indexOf('\n', js.lastIndexOf('\nimport ') + 1),
  js.indexOf('\nvar retasmFunc'),
);
if (!body.includes('function asmFunc'))
  throw new Error(`${jsFile} is not what wasm2js made before`);
writeFileSync(
  `${folder}/${name}-js.js`,
  `// Made by the build from src/ and wasm/: the core as JavaScript.
// @ts-nocheck
/** @type {(env: object) => any} */
export default (env) => {${body}
return asmFunc({ abort() { throw new RangeError('the core has failed'); }, ...env });
};
`,
);
console.log(`${name}: ${wasm.length} bytes, ${deflated.length} deflated`);
