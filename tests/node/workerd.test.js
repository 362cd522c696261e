// The files for Cloudflare Workers, without one: modules of WebAssembly are imported there, and here a bundler stands in for that.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { buildWorkerd } from '../../scripts/workerd.js';
import { ENTRIES } from '../../scripts/entries.js';

const compiled = {
  name: 'compiled',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.wasm$/ }, ({ path }) => ({
      contents: `export default new WebAssembly.Module(Buffer.from('${readFileSync(path, 'base64')}', 'base64'));`,
    })),
};

test('a call through the files for Workers, whose core is imported', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'abp-workerd-'));
  t.after(() => rmSync(folder, { recursive: true }));
  await buildWorkerd({ index: ENTRIES['.'].source, rpc: ENTRIES['./rpc'].source }, folder);
  const outfile = join(folder, 'bundle.mjs');
  await build({
    stdin: {
      contents: `export * from './index.js'; export * as rpc from './rpc.js';`,
      resolveDir: folder,
    },
    bundle: true,
    format: 'esm',
    platform: 'node',
    nodePaths: [fileURLToPath(new URL('../../node_modules', import.meta.url))],
    outfile,
    plugins: [compiled],
  });
  const { connect, expose, rpc } = await import(pathToFileURL(outfile).href);
  const { port1, port2 } = new MessageChannel();
  const app = { id: 'a', name: 'A', version: '1' };
  const exposed = expose({ app, capabilities: { echo: (params) => params } }, { port: port1 });
  const client = await connect(port2, { agent: { name: 'T', version: '1' } });
  assert.equal(await client.invoke('echo', 'hello'), 'hello');
  assert.equal(typeof rpc.createPeer, 'function');
  client.close();
  exposed.close();
});
