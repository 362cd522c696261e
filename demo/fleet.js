// npm run demo:fleet: three processes of one A2A agent, and a NATS server. One is killed while
// tasks run; then the answers of all processes are compared.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTaskClient } from '@abp-bridge/a2a';

const folder = mkdtempSync(join(tmpdir(), 'abp-fleet-'));
const effects = join(folder, 'effects');
writeFileSync(effects, '');
const say = (text = '') => console.log(text);
/** @type {import('node:child_process').ChildProcess[]} */
const children = [];
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

// Any free port.
const options = ['-js', '-sd', join(folder, 'nats'), '-a', '127.0.0.1', '-p', '-1'];
const nats = spawn(process.env.NATS_SERVER ?? 'nats-server', options, {
  stdio: ['ignore', 'ignore', 'pipe'],
});
children.push(nats);
nats.on('error', () => {
  console.error(
    'This demo needs nats-server: npm run demo:fleet installs it on Debian as root; else https://nats.io/download',
  );
  process.exit(2);
});
let log = '';
for await (const chunk of nats.stderr.iterator({ destroyOnReturn: false })) {
  log += chunk;
  if (log.includes('Server is ready')) break;
}
nats.stderr.resume();
const port = Number(/client connections on [\d.]+:(\d+)/.exec(log)?.[1]);
say(`NATS is at port ${port}.`);

const script = new URL('fleet-agent.js', import.meta.url);
const processes = await Promise.all(
  [1, 2, 3].map(async () => {
    const child = fork(script, [JSON.stringify({ port, effects, term: 2000 })]);
    children.push(child);
    const [at] = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [0])]);
    if (!at) {
      console.error(
        'A process did not start. npm run demo:fleet installs its packages, in demo/nats',
      );
      process.exit(2);
    }
    return { pid: child.pid, child, url: `http://127.0.0.1:${at}/`, alive: true };
  }),
);
say(
  `Three processes: ${processes.map(({ pid }) => pid).join(', ')}. Each request goes to the next one.\n`,
);

let turn = 0;
/** @type {typeof fetch} */
const balanced = (url, init) => {
  const living = processes.filter(({ alive }) => alive);
  const { pathname } = new URL(String(url));
  return fetch(new URL(pathname, living[turn++ % living.length].url), init);
};
const client = createTaskClient(processes[0].url, {
  fetch: balanced,
  // The card is that of the process that was asked for it.
  endpoints: processes.map(({ url }) => new URL(url).origin),
  limits: { retry: 100 },
});

const names = ['A', 'B', 'C', 'D', 'E', 'F'];
const running = names.map(async (name) => {
  const metadata = { steps: 8, ms: 500 };
  const stream = client.subscribe({ parts: [{ text: name }] }, { metadata });
  const ends = [];
  let last = '';
  for await (const event of stream) {
    const { status } = event.kind === 'task' ? event.task : event.kind === 'status' ? event : {};
    if (!status) continue;
    const line = `${name} ${status.state.padEnd(10)} ${status.message?.parts[0].text ?? ''}`;
    // A client that resumes gets the task as it is now.
    if (line !== last) say(line);
    last = line;
    if (event.kind === 'status' && status.state !== 'working') ends.push(status.state);
    if (name === 'B' && status.message?.parts[0].text?.startsWith('step 5'))
      void client.cancel(stream.task?.id ?? '').then(
        (task) =>
          say(
            `B: the cancel went to the process whose turn it was, and was answered "${task.status.state}"`,
          ),
        (error) => say(`B: the cancel was refused: ${error.message}`),
      );
  }
  const { id = '', status: { state = 'unknown' } = {} } = stream.task ?? {};
  return { name, id, state, ends };
});

await new Promise((resolve) => setTimeout(resolve, 1700));
const [victim] = processes;
say(`\nProcess ${victim.pid} is killed.\n`);
victim.alive = false;
victim.child.kill('SIGKILL');

const ended = await Promise.all(running);
const done = readFileSync(effects, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));
say('\n  task  its stream  process 2   process 3   done by');
let ok = true;
for (const { name, id, state, ends } of ended) {
  const told = [];
  for (const { url, alive } of processes)
    if (alive) told.push((await createTaskClient(url, { version: '1.0' }).get(id)).status.state);
  const by = done.filter((effect) => effect.id === id).map(({ pid }) => pid);
  say(
    `  ${name}     ${[state, ...told].map((one) => one.padEnd(11)).join(' ')} ${by.join(', ') || 'nobody'}`,
  );
  const wanted = name === 'B' ? 'canceled' : 'completed';
  ok &&= [state, ...told].every((one) => one === wanted) && ends.length <= 1;
  ok &&= wanted === 'canceled' ? by.length === 0 : by.length > 0;
}
say(ok ? '\nNothing was told wrong.' : '\nSomething was told wrong.');
process.exit(ok ? 0 : 1);
