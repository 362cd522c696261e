// The package in other people's bundlers and runtimes, which are installed here and nowhere else.
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { WebSocket } from 'ws';
import { connect } from '../../parts/main/index.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { EXPECTED, SMOKE, newProject, openPages, pageOf, root } from '../support/packed.js';
import { exchange } from './exchange.js';
import { bundled, sample, servePage, writeProgram } from './newcomer.js';

const here = join(root, 'tests/reach');
const modules = join(here, 'node_modules');
const bin = (name) => join(modules, '.bin', name);
/** Loads a package that is installed here. */
const load = createRequire(join(here, 'package.json'));
const run = promisify(execFile);
const json = (path) => JSON.parse(readFileSync(path, 'utf8'));
const agent = { name: 'reach', version: '1' };
let project, pages;

/** Installs what is tried, unless it is there. */
function install() {
  const age = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);
  const done = join(modules, '.package-lock.json');
  if (age(done) >= age(join(here, 'package-lock.json'))) return;
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  execFileSync('npm', args, { cwd: here, stdio: 'inherit' });
  // Puts its program where it is looked for.
  execFileSync('node', ['install.js'], { cwd: join(modules, 'bun'), stdio: 'inherit' });
}

before(async () => {
  install();
  ({ project } = newProject());
  for (const name of ['app.js', 'exchange.js', 'instances.js', 'runtime.js', 'worker.js']) {
    cpSync(join(here, name), join(project, name));
  }
  symlinkSync(join(root, 'node_modules/ws'), join(project, 'node_modules/ws'));
  pages = await openPages(project);
});
after(async () => {
  await pages?.close();
  rmSync(project, { recursive: true, force: true });
});

test('through Rollup', async () => {
  const { rollup } = load('rollup');
  const { nodeResolve } = load('@rollup/plugin-node-resolve');
  const warnings = [];
  const bundle = await rollup({
    input: join(project, 'main.js'),
    plugins: [nodeResolve()],
    onwarn: ({ message }) => warnings.push(message),
  });
  await bundle.write({ dir: join(project, 'rollup'), format: 'es' });
  await bundle.close();
  assert.deepEqual(warnings, []);
  writeFileSync(join(project, 'rollup.html'), pageOf('/rollup/main.js'));
  assert.equal(await pages.outcomeOf('/rollup.html'), EXPECTED);
});

for (const [name, bundler] of [
  ['webpack', () => load('webpack')],
  ['Rspack', () => load('@rspack/core').rspack],
]) {
  test(`through ${name}`, async () => {
    const compiler = bundler()({
      mode: 'production',
      context: project,
      entry: './main.js',
      output: { path: join(project, name) },
      performance: { hints: false }, // all entries at once are more than a page should load
    });
    const stats = await promisify(compiler.run.bind(compiler))();
    await promisify(compiler.close.bind(compiler))();
    assert.equal(stats.toString({ all: false, errors: true, warnings: true }), '');
    writeFileSync(join(project, `${name}.html`), pageOf(`/${name}/main.js`));
    assert.equal(await pages.outcomeOf(`/${name}.html`), EXPECTED);
  });
}

/** Copies the package into a folder's own modules, and links others there: one React for all. */
function copyPackage(folder, others) {
  for (const name of ['abp-bridge', '@cfworker/json-schema', '@noble/hashes']) {
    const [from, to] = [project, folder].map((path) => join(path, 'node_modules', name));
    cpSync(from, to, { recursive: true });
  }
  for (const name of others) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(modules, name), link);
  }
}

/** Starts a server in Node. Resolves when it has said where its page is. */
async function start(cwd, args, env = process.env) {
  const server = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const gone = once(server, 'exit');
  const stop = () => (server.kill(), gone);
  for await (const line of createInterface(server.stdout)) {
    const [, address] = /(?:Local:|host is at) +(http:\S+)/.exec(line) ?? [];
    // What it says later is read, too: a pipe that is full would halt it.
    if (address) return (server.stdout.resume(), { address, stop });
  }
  throw new Error(`It ended: ${await gone}`);
}

for (const [name, command] of [
  ['Bun', ['bun']],
  ['Deno', ['deno', 'run', '--allow-all']],
]) {
  test(`in ${name}, with the core as WebAssembly`, async () => {
    const [program, ...args] = command;
    const { stdout } = await run(bin(program), [...args, 'runtime.js'], { cwd: project });
    const { outcome, instances } = JSON.parse(stdout);
    assert.equal(outcome, `${EXPECTED},42,true,enough`);
    assert.ok(instances > 0);
  });
}

test('in a Cloudflare Worker, with the core as WebAssembly', async () => {
  const env = { ...process.env, WRANGLER_SEND_METRICS: 'false' };
  const date = '2026-01-01';
  const named = ['--name', 'reach', '--compatibility-date', date];
  const out = join(project, 'worker');
  const args = ['deploy', 'worker.js', '--dry-run', '--outdir', out, ...named];
  await run(bin('wrangler'), args, { cwd: project, env });
  const { Miniflare } = load('miniflare');
  const worker = new Miniflare({
    compatibilityDate: date,
    modules: true,
    modulesRules: [{ type: 'CompiledWasm', include: ['**/*.wasm'] }],
    modulesRoot: out,
    scriptPath: join(out, 'worker.js'),
  });
  try {
    const { host } = await worker.ready;
    const dial = () => webSocketTransport(new WebSocket(`ws://${host}/`));
    const client = await connect(dial, { agent });
    assert.equal(await exchange(client), '42,true,enough');
    client.close();
    const get = async (path) => (await worker.dispatchFetch(`http://${host}${path}`)).text();
    assert.equal(JSON.parse(await get('/.well-known/agent-card.json')).name, 'Reach');
    assert.equal(await get('/instances'), '1'); // that of tasks is made for the first of them
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] };
    const answer = await worker.dispatchFetch(`http://${host}/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
    });
    assert.equal((await answer.json()).id, 1);
    assert.equal(await get('/instances'), '2'); // one of each module, and nothing compiled
  } finally {
    await worker.dispose();
  }
});

test('through Next.js: in a page, while it is rendered ahead, and on the server', async () => {
  // Its bundler takes nothing from outside of a root, not even through links: so all is in the
  // repository.
  const folder = join(root, 'build/reach-next');
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(here, 'next'), folder, { recursive: true });
  cpSync(join(project, 'smoke.js'), join(folder, 'smoke.js'));
  const config = { turbopack: { root } };
  writeFileSync(join(folder, 'next.config.mjs'), `export default ${JSON.stringify(config)};`);
  copyPackage(folder, ['next', 'react', 'react-dom']);
  const next = join(modules, 'next/dist/bin/next');
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' };
  await run(process.execPath, [next, 'build'], { cwd: folder, env });
  const args = [next, 'start', '--port', '0', '--hostname', '127.0.0.1'];
  const server = await start(folder, args, env);
  try {
    const { address } = server;
    const get = async (path) => (await fetch(address + path)).text();
    assert.match(await get('/'), /The connection is .*idle/);
    assert.equal(await get('/node'), SMOKE);
    assert.equal(await pages.outcomeOf('/', address), SMOKE);
  } finally {
    await server.stop();
  }
});

for (const [name, ports] of [
  ['plain', [8080, 8081]],
  ['react', [5173, 5174]],
  ['typescript', [5173, 5174]],
]) {
  test(`the template ${name}: starts both sides, calls, and cancels`, async () => {
    const folder = join(project, name);
    const command = join(project, 'node_modules/.bin/abp-bridge');
    execFileSync(command, ['create', name, name], { cwd: project });
    const { dependencies, devDependencies, scripts } = json(join(folder, 'package.json'));
    const names = Object.keys({ ...dependencies, ...devDependencies });
    copyPackage(
      folder,
      names.filter((name) => name !== 'abp-bridge'),
    );
    // Ports that nothing gets by chance, and no other process of these tests.
    const first = 20_000 + (process.pid % 5_000) * 2;
    for (const path of readdirSync(folder, { recursive: true })) {
      if (path.startsWith('node_modules') || !/\.\w+$/.test(path)) continue;
      const text = readFileSync(join(folder, path), 'utf8');
      const replaced = ports.reduce((text, port, i) => text.replaceAll(port, first + i), text);
      // No machine makes so many before they are stopped.
      writeFileSync(join(folder, path), replaced.replace('pages: 200', 'pages: 1000000'));
    }
    assert.equal(scripts.start, 'node start.js');
    const server = await start(folder, ['start.js']);
    const page = await pages.browser.newPage();
    page.setDefaultTimeout(300_000);
    const failed = new Promise((_resolve, reject) => page.on('pageerror', reject));
    const says = (text) => {
      const read = (text) => new RegExp(`^${text}$`).test(document.querySelector('output')?.value);
      return Promise.race([page.waitForFunction(read, text), failed]);
    };
    try {
      await page.goto(server.address);
      await says('Connected');
      if (await page.locator('input').count()) {
        await page.fill('input', '2');
        await page.click('#run');
        await says('A report of 2 pages');
        assert.equal(await page.evaluate(() => document.querySelector('progress').value), 100);
        await page.fill('input', '1000000');
      }
      await page.evaluate(() => {
        const run = document.querySelector('#run');
        run.click();
        run.click();
      });
      await page.waitForFunction(() => document.querySelector('progress').value > 0);
      await page.click('#stop');
      await says('Stopped after [1-9]\\d* pages: the user pressed stop');
    } finally {
      await page.close();
      await server.stop();
    }
  });
}

test('by a newcomer: a view behind a sandbox page of another origin, a call of it, and a cancel', async () => {
  const name = '@abp-bridge/mcp-apps';
  const take = (language, words, places) =>
    sample(project, 'mcp-apps.md', language, words, places, name);
  const view = await bundled(
    project,
    `const capabilities = {
       'export.pdf': (_params, { signal }) =>
         new Promise((_resolve, reject) => {
           signal.addEventListener('abort', () => reject(signal.reason));
           view.callTool('begun', {});
         }),
     };
     const show = () => {};
     const draft = {};
     const onProgress = () => {};
     const { signal } = new AbortController();
     ${take('js', 'await createView({').replaceAll(/'abp-bridge'|'@abp-bridge\/mcp-apps'/g, "'@abp-bridge/mcp-apps/app'")}`,
  );
  const html = `<!doctype html><script type="module">${view.replaceAll('</script', '<\\/script')}</script>`;
  const sandbox = await servePage(
    project,
    name,
    take('html', 'serveSandbox', { 'https://agent.example': pages.url }),
    `frame-ancestors ${pages.url}`,
  );
  try {
    const places = { 'https://sandbox.example/': `http://localhost:${sandbox.port}/` };
    const called = 'await client.call(';
    const host = take('js', 'await createHost(iframe', {
      ...places,
      [called]: `globalThis.result = ${called}`,
    });
    const script = await bundled(
      project,
      `const [iframe] = document.getElementsByTagName('iframe');
       const controller = new AbortController();
       const { signal } = controller;
       const args = {};
       const confirmAndOpen = () => {};
       const answers = {
         'resources/read': ({ uri }) => ({
           contents: [{ uri, mimeType: 'text/html;profile=mcp-app', text: ${JSON.stringify(html).replaceAll('</script', '<\\/script')} }],
         }),
         'tools/list': () => ({
           tools: ['search', 'begun'].map((name) => ({ name, inputSchema: { type: 'object' } })),
         }),
         'tools/call': ({ name }) => {
           if (name === 'begun') controller.abort('the user pressed stop');
           return { content: [{ type: 'text', text: 'done' }] };
         },
       };
       const server = { request: async (method, params) => answers[method](params) };
       ${host}
       const { cancelled, error, metadata } = result;
       globalThis.outcome = [cancelled, error.message, metadata.outcome].join();`,
    );
    writeFileSync(join(project, 'newcomer-host.js'), script);
    const iframe = '<iframe></iframe>';
    writeFileSync(join(project, 'newcomer-host.html'), pageOf('/newcomer-host.js', iframe));
    assert.equal(
      await pages.outcomeOf('/newcomer-host.html'),
      'true,the user pressed stop,stopped',
    );
  } finally {
    sandbox.close();
  }
});

test('by a newcomer: an app on a server, called over a WebSocket by a page, and a cancel', async () => {
  const port = 30_000 + (process.pid % 5_000);
  const take = (language, words, places) =>
    sample(project, 'websocket.md', language, words, places);
  const served = take('ts', 'fromOrigins([', { 8443: port, 'https://agent.example': pages.url });
  await writeProgram(
    join(project, 'newcomer-server.js'),
    `const app = { id: 'example.writer', name: 'Writer', version: '1.0' };
     const capabilities = {
       begin: (_params, { signal, progress }) =>
         new Promise((_resolve, reject) => {
           signal.addEventListener('abort', () => reject(signal.reason));
           progress({ progress: 1 });
         }),
     };
     ${served}
     console.log('host is at http://127.0.0.1:${port}');`,
  );
  const server = await start(project, ['newcomer-server.js']);
  try {
    const dialed = take('js', "connect(() => webSocketTransport('wss:", {
      'wss://writer.example/abp': `ws://127.0.0.1:${port}/abp`,
    });
    const imports = { 'abp-bridge': 'abp-bridge', 'abp-bridge/transports': 'websocket' };
    const map = Object.fromEntries(
      Object.entries(imports).map(([name, file]) => [
        name,
        `/node_modules/abp-bridge/dist/page/${file}.js`,
      ]),
    );
    writeFileSync(
      join(project, 'newcomer-agent.js'),
      `${dialed}
       const controller = new AbortController();
       const { cancelled, error, metadata } = await client.call('begin', {}, {
         signal: controller.signal,
         onProgress: () => controller.abort('enough'),
       });
       client.close();
       globalThis.outcome = [cancelled, error.message, metadata.outcome].join();`,
    );
    const importMap = `<script type="importmap">${JSON.stringify({ imports: map })}</script>`;
    writeFileSync(join(project, 'newcomer-agent.html'), pageOf('/newcomer-agent.js', importMap));
    assert.equal(await pages.outcomeOf('/newcomer-agent.html'), 'true,enough,stopped');
    // Who sends no origin is refused, as the document says.
    const dial = () => webSocketTransport(new WebSocket(`ws://127.0.0.1:${port}/abp`));
    await assert.rejects(connect(dial, { agent }), { code: 'DISCONNECTED', message: /401/ });
  } finally {
    await server.stop();
  }
});
