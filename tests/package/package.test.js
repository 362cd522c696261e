// The package as a stranger gets it: packed, installed into an empty project, and used in Node, through
// esbuild, through Vite, in a page without a bundler, and from TypeScript.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, test } from 'node:test';
import { launch } from '../support/browser.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const bin = (name) => join(root, 'node_modules/.bin', name);
const EXPECTED = '42,INVALID_PARAMS,enough';
let project, browser, server, url;

before(async () => {
  project = mkdtempSync(join(tmpdir(), 'abp-bridge-'));
  const run = (...args) => execFileSync('npm', args, { cwd: root, encoding: 'utf8' });
  const packed = run('pack', '--silent', '--pack-destination', project).trim().split('\n').at(-1);
  const [listed] = JSON.parse(run('pack', '--dry-run', '--ignore-scripts', '--json'));
  assert.deepEqual(
    listed.files.filter(
      ({ path }) => !/^(js|dist)\/|^(LICENSE|README.md|package.json|src\/abp_token.h)$/.test(path),
    ),
    [],
  );
  writeFileSync(join(project, 'package.json'), '{ "type": "module", "private": true }');
  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', join(project, packed)], {
    cwd: project,
  });
  cpSync(join(root, 'tests/package/smoke.js'), join(project, 'smoke.js'));
  writeFileSync(
    join(project, 'main.js'),
    "import { smoke } from './smoke.js';\nsmoke().then((outcome) => (globalThis.outcome = outcome), (error) => (globalThis.outcome = String(error)));\n",
  );
  const page = (script, map = '') =>
    `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">${map}<script type="module" src="${script}"></script>`;
  writeFileSync(join(project, 'index.html'), page('/main.js'));
  writeFileSync(join(project, 'esbuild.html'), page('/out/main.js'));
  const direct = '{"imports":{"abp-bridge":"/node_modules/abp-bridge/dist/page/abp-bridge.js"}}';
  writeFileSync(
    join(project, 'direct.html'),
    page('/main.js', `<script type="importmap">${direct}</script>`),
  );
  const types = { '.html': 'text/html', '.js': 'text/javascript' };
  server = createServer((request, response) => {
    const path = join(project, new URL(request.url, 'http://localhost').pathname);
    try {
      const content = readFileSync(path);
      response.writeHead(200, { 'content-type': types[extname(path)] }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, resolve));
  url = `http://127.0.0.1:${server.address().port}`;
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.close();
  rmSync(project, { recursive: true, force: true });
});

async function outcomeOf(path) {
  const page = await browser.newPage();
  await page.goto(url + path);
  await page.waitForFunction(() => globalThis.outcome);
  return page.evaluate(() => globalThis.outcome);
}

test('in Node', () => {
  const script = "import { smoke } from './smoke.js'; console.log(await smoke());";
  const args = ['--input-type=module', '-e', script];
  assert.equal(execFileSync('node', args, { cwd: project, encoding: 'utf8' }).trim(), EXPECTED);
});

test('its other entries, in Node', () => {
  const script =
    "import { webSocketTransport } from 'abp-bridge/websocket'; console.log(typeof webSocketTransport);";
  const args = ['--input-type=module', '-e', script];
  assert.equal(execFileSync('node', args, { cwd: project, encoding: 'utf8' }).trim(), 'function');
});

test('in a page without a bundler', async () => {
  assert.equal(await outcomeOf('/direct.html'), EXPECTED);
});

test('through esbuild', async () => {
  const args = ['main.js', '--bundle', '--splitting', '--format=esm', '--outdir=out'];
  execFileSync(bin('esbuild'), [...args, '--log-level=error'], { cwd: project });
  assert.equal(await outcomeOf('/esbuild.html'), EXPECTED);
});

test('through Vite', async () => {
  execFileSync(bin('vite'), ['build', '--logLevel', 'error', '--base', '/dist/'], { cwd: project });
  assert.equal(await outcomeOf('/dist/index.html'), EXPECTED);
});

test('from TypeScript', () => {
  cpSync(join(root, 'tests/types/consumer.ts'), join(project, 'consumer.ts'));
  const args = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom'];
  const modules = ['--module', 'nodenext', '--moduleResolution', 'nodenext', 'consumer.ts'];
  execFileSync(bin('tsc'), [...args, ...modules], {
    cwd: project,
    stdio: 'pipe',
    encoding: 'utf8',
  });
});
