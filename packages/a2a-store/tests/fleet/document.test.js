// packages/a2a-store/docs/a2a-fleet.md by the letter: its commands and its programs, in an empty
// folder. Only the ports are those of this machine.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { NATS_SERVER } from './nats-server.js';

// The commands say `node`: it is the one that runs this.
process.env.PATH = [dirname(process.execPath), process.env.PATH].join(delimiter);

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'abp-document-'));
/** @type {import('node:child_process').ChildProcess[]} */
const children = [];
after(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const hasSqlite = await import('node:sqlite').then(
  () => true,
  () => false,
);

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  server.close();
  await once(server, 'close');
  return String(port);
}

const document = readFileSync(join(root, 'packages/a2a-store/docs/a2a-fleet.md'), 'utf8');
/** The ports of the document, and free ones. */
const PORTS = new Map(
  await Promise.all(['4222', '8080', '8081', '8082'].map(async (port) => [port, await freePort()])),
);

/**
 * A block of the document, with the ports of this machine.
 * @param {string} language
 * @param {string} words
 * @param {string} section
 */
function block(language, words, section) {
  const [, text] = document.split(`\n## ${section}\n`);
  assert.ok(text, section);
  const blocks = [
    ...text.split('\n## ')[0].matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms')),
  ];
  const found = blocks.map(([, code]) => code).find((code) => code.includes(words));
  assert.ok(found, `${section} has no ${language} with ${words}`);
  return [...PORTS].reduce((code, [from, to]) => code.replaceAll(from, to), found);
}

/**
 * Runs a command that goes on.
 * @param {string} command
 * @param {string} cwd
 */
function begin(command, cwd) {
  const child = spawn('sh', ['-c', `exec env ${command}`], {
    cwd,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  children.push(child);
  let said = '';
  child.stderr.on('data', (data) => (said += data));
  return {
    child,
    /** @param {string} words */
    async says(words) {
      while (!said.includes(words))
        await Promise.race([
          once(child.stderr, 'data'),
          once(child, 'exit').then(() => assert.fail(`${command} has ended:\n${said}`)),
        ]);
    },
  };
}

const run = promisify(execFile);

/**
 * Until something listens there.
 * @param {string} port
 */
async function listening(port) {
  for (;;)
    try {
      return await fetch(`http://localhost:${port}/.well-known/agent-card.json`);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

/**
 * An empty project with what `npm install` would bring.
 * @param {string} name
 */
function project(name) {
  const path = join(folder, name);
  mkdirSync(join(path, 'node_modules/@abp-bridge'), { recursive: true });
  symlinkSync(root, join(path, 'node_modules/abp-bridge'));
  for (const neighbour of ['a2a', 'a2a-store'])
    symlinkSync(
      join(root, 'packages', neighbour),
      join(path, 'node_modules/@abp-bridge', neighbour),
    );
  symlinkSync(join(root, 'node_modules/@nats-io'), join(path, 'node_modules/@nats-io'));
  return path;
}

test('several processes on NATS, as the document has them', { timeout: 600_000 }, async () => {
  const section = 'Several processes, on NATS';
  const path = project('nats');
  const install = block('sh', 'npm install', section);
  for (const name of [
    '@abp-bridge/a2a',
    '@abp-bridge/a2a-store',
    '@nats-io/transport-node',
    '@nats-io/jetstream',
  ])
    assert.ok(`${install} `.includes(` ${name} `));
  const nats = begin(block('sh', 'nats-server', section).replace('nats-server', NATS_SERVER), path);
  await nats.says('Server is ready');
  writeFileSync(join(path, 'agent.mjs'), block('js', '// agent.mjs', section));
  writeFileSync(join(path, 'client.mjs'), block('js', '// client.mjs', section));
  const [one, other] = ['8081', '8082'].map((port) => PORTS.get(port) ?? '');
  const first = begin(block('sh', 'PORT=8081', section), path);
  const second = begin(block('sh', 'PORT=8082', section), path);
  await Promise.all([listening(one), listening(other)]);
  const { stdout: answers } = await run('sh', ['-c', block('sh', 'curl', section)]);
  const [sent, listed] = answers.split(/(?<=\})(?=\{"tasks")/).map((text) => JSON.parse(text));
  assert.equal(sent.task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(listed.tasks[0].id, sent.task.id);
  assert.equal(listed.totalSize, 1);
  const client = await run('sh', ['-c', block('sh', 'client.mjs', section)], { cwd: path });
  assert.match(client.stdout, /^[\w-]+ completed$/m);
  assert.match(
    client.stdout,
    new RegExp(`^2 tasks, the latest done by process ${first.child.pid}$`, 'm'),
  );
  // Both ends as the document says they are ended.
  for (const [{ child }, signal] of /** @type {const} */ ([
    [first, 'SIGTERM'],
    [second, 'SIGINT'],
  ])) {
    const ended = once(child, 'exit');
    child.kill(signal);
    assert.deepEqual(await ended, [0, null]);
    if (child !== first.child) continue;
    const { tasks } = await (await fetch(`http://localhost:${other}/tasks`)).json();
    assert.deepEqual(
      tasks.map(({ status }) => status.state),
      ['TASK_STATE_COMPLETED', 'TASK_STATE_COMPLETED'],
    );
  }
});

test(
  'one process and a file, as the document has it',
  { skip: !hasSqlite, timeout: 600_000 },
  async () => {
    const path = project('sqlite');
    writeFileSync(join(path, 'agent.mjs'), block('js', 'sqliteBackend', 'One process, and a file'));
    const port = PORTS.get('8080') ?? '';
    const message = { messageId: '1', role: 'ROLE_USER', parts: [{ text: 'go' }] };
    for (const expected of [1, 2]) {
      const { child } = begin('node agent.mjs', path);
      await listening(port);
      await fetch(`http://localhost:${port}/message:send`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ message: { ...message, messageId: `${expected}` } }),
      });
      // What the process before has done is there.
      const listed = await (await fetch(`http://localhost:${port}/tasks`)).json();
      assert.equal(listed.totalSize, expected);
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
  },
);
