// Makes build/abp-bridge-gateway.mcpb: one file with all that the gateway needs except Node and a
// browser.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packExtension } from '@anthropic-ai/mcpb';
import { build } from 'esbuild';
import { manifestOf } from './manifest.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const folder = join(root, 'build/mcpb');
const about = JSON.parse(readFileSync(join(root, 'packages/gateway/package.json'), 'utf8'));

rmSync(folder, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: {
    main: 'packages/gateway/src/main.js',
    // The thread is started by its address, beside the chunk that starts it.
    'chunks/schema-worker': 'packages/gateway/src/schema-worker.js',
  },
  outdir: join(folder, 'server'),
  bundle: true,
  metafile: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  // A command loads only its own code.
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  // CommonJS modules load Node's own by `require`, which ES modules do not have.
  banner: {
    js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
  },
  logLevel: 'warning',
});

const write = (name, text) => writeFileSync(join(folder, name), text);
write('manifest.json', JSON.stringify(manifestOf(about), undefined, 2));
// The program reads its version from it, and Node that these are ES modules.
write('package.json', JSON.stringify({ name: about.name, version: about.version, type: 'module' }));
write('LICENSE', readFileSync(join(root, 'LICENSE')));

// The licenses of bundled packages must be distributed with them.
mkdirSync(join(folder, 'licenses'));
const packages = Object.keys(metafile.inputs).flatMap(
  (path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [],
);
for (const path of new Set(packages)) {
  const name = path.split('node_modules/').at(-1).replace('/', '+');
  const texts = readdirSync(join(root, path))
    .filter((each) => /^(licen[cs]e|notice)/i.test(each))
    .map((each) => readFileSync(join(root, path, each), 'utf8'));
  const { license } = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'));
  write(`licenses/${name}.txt`, texts.join('\n') || `${license}\n`);
}

const outputPath = join(root, 'build', `${about.name}.mcpb`);
const isPacked = await packExtension({ extensionPath: folder, outputPath, silent: true });
if (!isPacked || !existsSync(outputPath)) {
  throw new Error(`${folder} was not packed: npx mcpb validate ${folder}/manifest.json says why`);
}
