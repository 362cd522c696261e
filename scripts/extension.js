// Builds the extension for the developer tools of Chromium, in build/extension: load it there unpacked.
import { copyFileSync, mkdirSync } from 'node:fs';
import { build } from 'esbuild';

const FILES = ['manifest.json', 'devtools.html', 'devtools.js', 'panel.html'];
const ICONS = [16, 48, 128].map((size) => `icon-${size}.png`);

mkdirSync('build/extension', { recursive: true });
for (const name of [...FILES, ...ICONS])
  copyFileSync(`packages/inspector/extension/${name}`, `build/extension/${name}`);
await build({
  entryPoints: ['packages/inspector/extension/panel.js'],
  bundle: true,
  format: 'esm',
  target: 'es2022',
  outfile: 'build/extension/panel.js',
});
