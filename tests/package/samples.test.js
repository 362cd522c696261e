// What a stranger begins with, as it is written: the tutorial, the recipe of a stop button, and a
// template by its command. Each in a page, by who presses a button twice.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  FILES as PAGE,
  importMap,
  newProject,
  openPages,
  pageOf,
  root,
} from '../support/packed.js';

let project, packed, pages;
before(async () => {
  ({ project, packed } = newProject());
  pages = await openPages(project);
});
after(async () => {
  await pages?.close();
  rmSync(project, { recursive: true, force: true });
});

/**
 * Two ports that nobody listened to a moment ago.
 * @returns {Promise<number[]>}
 */
async function freePorts() {
  const servers = [createServer(), createServer()];
  const ports = servers.map(async (server) => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return server.address().port;
  });
  const found = await Promise.all(ports);
  for (const server of servers) server.close();
  return found;
}

/** Names the ports of this machine in place of those in a text. */
const withPorts = (text, from, to) =>
  text.replace(new RegExp(from.join('|'), 'g'), (port) => to[from.indexOf(port)]);

/** A page, and what a person does there. */
async function visitor() {
  const page = await pages.browser.newPage();
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  return {
    page,
    problems,
    says: (text) => page.locator('output').filter({ hasText: text }).waitFor(),
    press: (name) => page.getByRole('button', { name }).click(),
    /** Without a pause, so that nothing happens between. */
    pressTwice: (name) =>
      page.getByRole('button', { name }).evaluate((button) => (button.click(), button.click())),
    begun: () => page.waitForFunction(() => document.querySelector('progress').value > 0),
    progress: () => page.evaluate(() => document.querySelector('progress').value),
    /** The calls that the app in its frame still works on. */
    async inFlight() {
      const frame = page.frames().at(-1);
      return frame.evaluate(() => globalThis.exposed.counters.map((each) => each.inFlightIn));
    },
  };
}
/** The app's script, which lets a test see what it still works on. */
const visible = (code) =>
  code.replace(/^(const app = )?expose\(/m, '$1globalThis.exposed = expose(');

/** The files that the tutorial tells to write: their names, and what is in them. */
const FILES = /`([\w.]+)`(?: is now)?:\n\n```\w+\n(.*?)^```$/gms;

test('the tutorial runs, step by step, and who presses Count twice loses no call', async () => {
  const folder = join(project, 'tutorial');
  mkdirSync(folder);
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
  const ports = await freePorts();
  const [, ...steps] = readFileSync(join(root, 'docs/tutorial.md'), 'utf8').split(/^## /m);
  assert.equal(steps.length, 10);
  const take = (some, change = (code) => code) => {
    for (const [, file, code] of some.join('').matchAll(FILES))
      writeFileSync(join(folder, file), change(visible(withPorts(code, ['8001', '8002'], ports))));
  };
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const { page, problems, says, press, pressTwice, begun, progress, inFlight } = await visitor();
  take(steps.slice(0, 6));
  const server = spawn(process.execPath, ['server.js'], { cwd: folder });
  try {
    await once(server.stdout, 'data');
    const ready = async () => {
      await page.goto(`http://127.0.0.1:${ports[0]}/agent.html`);
      await page.waitForFunction(() => document.querySelector('button').onclick);
    };
    await ready();
    await press('Count');
    await says('25 primes');
    // Its progress is told every thousand numbers, and once more at the end.
    take(steps.slice(6), (code) => code.replace('10_000_000', '100_500'));
    await ready();
    await press('Count');
    await says('9632 primes');
    assert.equal(await progress(), 100);
    take(steps.slice(6));
    await ready();
    await pressTwice('Count');
    await begun();
    await press('Stop');
    await says(/^Stopped at [1-9]\d*000: you pressed Stop$/);
    assert.deepEqual(await inFlight(), [0]);
    await press('Count');
    await page.evaluate(() => document.querySelector('iframe').remove());
    await says('Not known whether it was done: ');
    assert.deepEqual(problems, []);
  } finally {
    server.kill();
    await page.close();
  }
});

test('the stop button of the recipes stops what runs, and who presses twice loses no call', async () => {
  const text = readFileSync(join(root, 'docs/recipes.md'), 'utf8');
  const [recipe] = /^\/\/ stop-button\.js\n.*?(?=^```$)/ms.exec(text);
  writeFileSync(
    join(project, 'stop-button.js'),
    `import { connect, expose } from 'abp-bridge';
     const { port1, port2 } = new MessageChannel();
     const app = { id: 'a', name: 'A', version: '1' };
     const capabilities = {
       'export.pdf': (_params, { signal }) =>
         new Promise((_resolve, reject) => {
           signal.addEventListener('abort', () => reject(signal.reason));
         }),
     };
     globalThis.exposed = expose({ app, capabilities }, { port: port1 });
     const client = await connect(port2, { agent: { name: 'a', version: '1' } });
     ${recipe}
     document.title = 'ready';`,
  );
  const body = `${importMap}<button>Start</button><button disabled>Stop</button><output></output>`;
  writeFileSync(join(project, 'stop-button.html'), pageOf('/stop-button.js', body));
  const { page, problems, says, press, pressTwice, inFlight } = await visitor();
  await page.goto(`${pages.url}/stop-button.html`);
  await page.waitForFunction(() => document.title === 'ready');
  for (let round = 0; round < 2; round++) {
    await pressTwice('Start');
    await press('Stop');
    await says('Stopped: you pressed stop');
    assert.deepEqual(await inFlight(), [0]);
    await page.evaluate(() => (document.querySelector('output').value = ''));
  }
  assert.deepEqual(problems, []);
  await page.close();
});

test('in workers: errors name what works there, which does', async () => {
  const app = "{ app: { id: 'a', name: 'A', version: '1' }, capabilities: { answer: () => 42 } }";
  const inService = (from) => `import { expose } from '${from}';
    addEventListener('message', ({ source, ports: [port] }) =>
      expose(${app}, { port }).ready.then(() => {}, ({ message }) => source.postMessage(message)));`;
  const files = {
    'bare-worker.js': `import { expose } from 'abp-bridge'; expose(${app});`,
    'bare-pool.js': "import { serve } from 'abp-bridge/pool'; serve({ answer: () => 42 });",
    'path-worker.js': `import { expose } from '${PAGE}abp-bridge.js'; expose(${app});`,
    'path-pool.js': `import { serve } from '${PAGE}pool.js'; serve({ answer: () => 42 });`,
    'service-main.js': inService(`${PAGE}abp-bridge.js`),
    'service-bundle.js': inService(`${PAGE}abp-bridge.bundle.js`),
    'workers.js': `
      import { connect } from 'abp-bridge';
      import { pool } from 'abp-bridge/pool';
      const ask = async (target) => {
        const client = await connect(target, { agent: { name: 'a', version: '1' }, timeout: 0 });
        return (await client.call('answer')).data;
      };
      const start = (file) => () => new Worker(file, { type: 'module' });
      globalThis.inWorker = (file) => ask(start(file)).catch(String);
      globalThis.inPool = (file) => pool(start(file)).run('answer')().catch(String);
      globalThis.inService = async (file) => {
        const options = { scope: \`/\${file}/\`, type: 'module' };
        const { installing } = await navigator.serviceWorker.register(file, options);
        const { port1, port2 } = new MessageChannel();
        const refused = new Promise((resolve) => {
          navigator.serviceWorker.onmessage = ({ data }) => resolve(data);
        });
        installing.postMessage('', [port2]);
        return Promise.race([ask(port1), refused]);
      };`,
  };
  for (const [name, code] of Object.entries(files)) writeFileSync(join(project, name), code);
  writeFileSync(join(project, 'workers.html'), pageOf('/workers.js', importMap));
  const { page } = await visitor();
  await page.goto(`${pages.url}/workers.html`);
  await page.waitForFunction(() => globalThis.inService);
  const tried = (where, file) => page.evaluate(([w, f]) => globalThis[w](f), [where, file]);
  const noMap =
    /script did not load; workers have no import map \(docs\/errors\.md#a-file-did-not-load\)/;
  assert.match(await tried('inWorker', 'bare-worker.js'), noMap);
  assert.match(await tried('inPool', 'bare-pool.js'), noMap);
  assert.equal(await tried('inWorker', 'path-worker.js'), 42);
  assert.equal(await tried('inPool', 'path-pool.js'), 42);
  const noImport =
    /^A part of abp-bridge did not load \(abp-bridge\/page\/bundle has all\): import\(\)/;
  assert.match(await tried('inService', 'service-main.js'), noImport);
  assert.equal(await tried('inService', 'service-bundle.js'), 42);
  await page.close();
});

test('a template comes by a command from the packed file, installs, runs, and is used by keyboard', async () => {
  const empty = mkdtempSync(join(tmpdir(), 'stranger-'));
  const create = (...args) =>
    spawnSync('npx', ['--yes', '--package', packed['abp-bridge'], 'abp-bridge', ...args], {
      cwd: empty,
      encoding: 'utf8',
    });
  const fails = (args, words) => {
    const { status, stderr } = create(...args);
    assert.equal(status, 1);
    assert.match(stderr, words);
  };
  const { page, problems, says, pressTwice, begun, progress, inFlight } = await visitor();
  let server;
  try {
    const templates = 'plain, react, typescript';
    fails([], new RegExp(`^Usage: .* create TEMPLATE FOLDER\nTemplates: ${templates}\n$`));
    fails(['create', 'vue', 'mine'], new RegExp(`no template "vue".* There are: ${templates}\n$`));
    assert.deepEqual(readdirSync(empty), []);

    mkdirSync(join(empty, 'There Already'));
    const { status, stdout } = create('create', 'plain', 'There Already');
    assert.deepEqual([status, stdout.match(/npm install\n +npm start\n$/)?.length], [0, 1], stdout);
    const folder = join(empty, 'There Already');
    fails(['create', 'react', 'There Already'], /^There Already exists and is not an empty folder/);
    assert.ok(!readFileSync(join(folder, 'package.json'), 'utf8').includes('react'));
    writeFileSync(join(empty, 'file'), '');
    fails(['create', 'react', 'file'], /^file exists and is not an empty folder/);

    const { name, scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    assert.deepEqual([name, scripts.start], ['there-already', 'node start.js']);
    execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund'], { cwd: folder });
    const ports = await freePorts();
    for (const path of ['start.js', 'app/app.js', 'host/host.js', 'host/index.html']) {
      const code = withPorts(readFileSync(join(folder, path), 'utf8'), ['8080', '8081'], ports);
      writeFileSync(join(folder, path), visible(code));
    }
    server = spawn('npm', ['start'], {
      cwd: folder,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const address = `http://localhost:${ports[0]}/`;
    for (let said = ''; !said.includes(address);) said += (await once(server.stdout, 'data'))[0];
    await page.goto(address);
    await says('Connected');
    const pages = page.getByLabel('Pages');
    await pages.fill('3');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await says('A report of 3 pages');
    assert.equal(await progress(), 100);
    // No machine makes so many before they are stopped.
    await pages.fill('1000000');
    await pressTwice('Run');
    await begun();
    await page.getByRole('button', { name: 'Stop' }).focus();
    await page.keyboard.press('Enter');
    await says(/^Stopped after [1-9]\d* pages: the user pressed stop$/);
    assert.deepEqual(await inFlight(), [0]);
    assert.deepEqual(problems, []);
  } finally {
    await page.close();
    if (server) process.kill(-server.pid);
    rmSync(empty, { recursive: true, force: true });
  }
});
