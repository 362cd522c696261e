// Makes dist/in-page.js: the code that is injected into pages, as one text.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const { outputFiles } = buildSync({
  entryPoints: [at('../src/in-page.js')],
  bundle: true,
  format: 'iife',
  globalName: 'inPage',
  target: 'es2022',
  minifySyntax: true,
  minifyWhitespace: true,
  write: false,
});
writeFileSync(
  at('../../../dist/in-page.js'),
  `export default ${JSON.stringify(outputFiles[0].text)};\n`,
);
