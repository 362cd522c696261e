// Makes the program of the package from Emscripten's output for replay.c: small, and run by Node.
import { chmodSync, readFileSync } from 'node:fs';
import { buildSync } from 'esbuild';

const [, , from, to] = process.argv;
buildSync({
  stdin: { contents: readFileSync(from, 'utf8') },
  outfile: to,
  minify: true,
  platform: 'node',
  target: 'node20',
  banner: { js: '#!/usr/bin/env node' },
});
chmodSync(to, 0o755);
