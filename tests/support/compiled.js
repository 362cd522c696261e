/**
 * Prints how many functions of the module an agent and an app compile for a connection and a call,
 * each in a process of its own. V8 compiles a function when it is first called, as in a page.
 *
 *   node tests/support/compiled.js
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const file = fileURLToPath(import.meta.url);
const folder = process.env.FOLDER ?? mkdtempSync(join(tmpdir(), 'compiled-'));
const FLAGS = ['--wasm-lazy-compilation', '--no-wasm-tier-up', '--trace-wasm-compilation-times'];

/** The other process, as a transport. */
function transportTo(port) {
  const transport = {
    onMessage() {},
    close() {},
    post: (message) => port.send({ message }),
  };
  port.on('message', ({ message }) => message && transport.onMessage(message, []));
  return transport;
}

async function serve() {
  const { expose } = await import('../../parts/main/index.js');
  const app = { id: 'a.b', name: 'A', version: '1' };
  const exposed = expose({ app, capabilities: { echo: (params) => params } }, { origins: [] });
  exposed.accept(transportTo(process));
  await exposed.ready;
  process.send({ isReady: true });
}

async function call() {
  const { connect } = await import('../../parts/main/index.js');
  const app = start('serve');
  await once(app, 'message');
  const client = await connect(transportTo(app), { agent: { name: 'a', version: '1' } });
  const { success } = await client.call('echo', { title: 'a document' });
  process.exitCode = success ? 0 : 1;
  app.kill();
  await once(app, 'close');
}

/**
 * Runs this file on one side. What V8 prints goes to a file: a pipe may lose some of it.
 * @param {'serve' | 'call'} side
 */
const start = (side) =>
  fork(file, [side], {
    execArgv: FLAGS,
    serialization: 'advanced',
    stdio: ['ignore', openSync(join(folder, side), 'w'), 'inherit', 'ipc'],
    env: { ...process.env, FOLDER: folder },
  });

if (process.argv[2]) await { serve, call }[process.argv[2]]();
else {
  const [code] = await once(start('call'), 'close');
  const [agent, app] = ['call', 'serve'].map((side) => {
    const text = readFileSync(join(folder, side), 'utf8');
    return text.match(/^Compiled function .* using Liftoff/gm)?.length ?? 0;
  });
  rmSync(folder, { recursive: true });
  console.log(`${agent + app} functions of the module: agent ${agent}, app ${app}`);
  process.exitCode = code;
}
