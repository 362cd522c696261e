// The recipes of docs/recipes.md: those that need no browser run as they are written. The job
// `package` compiles the others.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';

const root = fileURLToPath(new URL('../../', import.meta.url));
const text = readFileSync(join(root, 'docs/recipes.md'), 'utf8');
// In the repository, so that packages are found there.
mkdirSync(join(root, 'build'), { recursive: true });
const folder = mkdtempSync(join(root, 'build/recipes-'));
after(() => rmSync(folder, { recursive: true }));

for (const [, code, name] of text.matchAll(/^```[jt]s\n(\/\/ ([\w-]+)\.[jt]s\n.*?)^```$/gms)) {
  const { code: script } = await transform(code, { loader: 'ts' });
  writeFileSync(join(folder, `${name}.js`), script);
}

/** A port that was free a moment ago. */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Runs a recipe. */
function run(name, env) {
  const child = spawn(process.execPath, [name], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  child.stdout.setEncoding('utf8');
  return child;
}

/** What it says until it ends. */
async function outputOf(child) {
  let words = '';
  child.stdout.on('data', (part) => (words += part));
  await once(child, 'close');
  return words;
}

describe('a server and its agent meet:', () => {
  for (const recipe of ['express.js', 'hono.js']) {
    test(recipe, async (t) => {
      const env = { PORT: String(await freePort()), TOKEN: 'a secret' };
      const server = run(recipe, env);
      t.after(() => server.kill());
      await once(server.stdout, 'data');
      const page = await fetch(`http://127.0.0.1:${env.PORT}/`);
      assert.equal(await page.text(), 'The writer');
      assert.equal(await outputOf(run('agent.js', env)), 'IT WORKS\n');
      const stranger = run('agent.js', { ...env, TOKEN: 'another one' });
      stranger.stdout.resume();
      const [code] = await once(stranger, 'close');
      assert.notEqual(code, 0);
    });
  }
});

test('the component for React compiles', async () => {
  const frameworks = readFileSync(join(root, 'docs/frameworks.md'), 'utf8');
  const [, code] = frameworks.match(/^```jsx\n(.*?)^```$/ms);
  const { warnings } = await transform(code, { loader: 'jsx', jsx: 'automatic' });
  assert.deepEqual(warnings, []);
});
