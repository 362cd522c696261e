// What an agent's operations cost when many tasks are stored: in memory, in a file of SQLite (from Node 22.13 on) and on NATS.
// Each number of tasks is in a process of its own; the tasks are copies of one that the agent has worked on. Prints ms at the
// smallest number, and the others as its multiples.
//
//   npm run bench:fleet -- --many [--write] [--most=100000]
//
//   --write   puts the table into docs/a2a-fleet.md
//   --most    the largest number of tasks (1000000)
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SIZES = [1e3, 1e4, 1e5, 1e6];
/** On NATS, filling takes longer than anybody waits. */
const MOST_ON_NATS = 1e4;
const SAMPLES = 60;
/** Tasks of a context. */
const TOGETHER = 10;
const HEADERS = { 'content-type': 'application/json', 'a2a-version': '1.0' };
const COLUMNS = [
  ['task', 'one more task'],
  ['get', 'get'],
  ['context', 'list of a context'],
  ['first', "a list's first page"],
  ['next', 'its next page'],
  ['scan', 'what a process looks at each few seconds'],
];

/** @param {number[]} numbers */
const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

// --- A process ---------------------------------------------------------------------------------------

/** How a backend is opened, filled and measured, by its name. */
const BACKENDS = {
  async memory() {
    const { memoryBackend } = await import('../src/store/index.js');
    const backend = memoryBackend({ maxStored: Infinity });
    return { backend, fill: (tasks) => fillByItself(backend, tasks, 1), bytes: heapUsed };
  },
  async SQLite(path) {
    const { sqliteBackend } = await import('../src/store/index.js');
    const { DatabaseSync } = await import('node:sqlite');
    const backend = await sqliteBackend(path);
    return {
      backend,
      // Each record would wait for the disk.
      async fill(tasks) {
        await backend.close();
        const database = new DatabaseSync(path);
        database.exec('BEGIN');
        const record = database.prepare('INSERT INTO records VALUES (?, ?, ?)');
        const entry = database.prepare('INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)');
        for (const { id, records, entries } of tasks) {
          records.forEach((data, i) => record.run(id, i + 1, data));
          for (const { name, tenant, context, time, data } of entries)
            entry.run(name, tenant, context, time, data, 1);
        }
        database.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
        database.close();
        return sqliteBackend(path);
      },
      bytes: () => statSync(path).size,
    };
  },
  async NATS(port) {
    const { createRequire } = await import('node:module');
    const { natsBackend } = await import('../src/store/index.js');
    const { resolve } = createRequire(new URL('../tests/fleet/package.json', import.meta.url));
    const { connect } = await import(resolve('@nats-io/transport-node'));
    const jetstream = await import(resolve('@nats-io/jetstream'));
    const connection = await connect({ servers: `127.0.0.1:${port}` });
    const backend = await natsBackend({ connection, jetstream });
    const jsm = await jetstream.jetstreamManager(connection);
    return {
      backend,
      fill: (tasks) => fillByItself(backend, tasks, 64),
      async bytes() {
        const infos = await Promise.all(
          ['a2a_log', 'a2a_state'].map((name) => jsm.streams.info(name)),
        );
        return infos.reduce((sum, { state }) => sum + state.bytes, 0);
      },
    };
  },
};

function heapUsed() {
  for (let i = 0; i < 3; i++) globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

/** Stores tasks as an agent does, some at once. */
async function fillByItself(backend, tasks, atOnce) {
  const one = async () => {
    for (const { id, records, entries } of tasks) {
      let last = 0;
      for (const data of records) last = await backend.append(id, data, last);
      for (const { name, ...entry } of entries) await backend.note(name, entry, 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  return backend;
}

/** Copies of a task that an agent has worked on: its records with ids of their own, and its entries. */
function* copiesOf(records, count) {
  const since = Date.now();
  const hour = `${Math.floor(since / 3_600_000)}`;
  for (let i = 0; i < count; i++) {
    const id = `task-${i}`;
    const contextId = `context-${Math.floor(i / TOGETHER)}`;
    const own = records.map(({ data }, place) => {
      const record = JSON.parse(data);
      record.id = `${id}-${place}`;
      for (const { origin } of record.e) if (origin) origin.contextId = contextId;
      return JSON.stringify(record);
    });
    const time = since - count + i;
    const data = JSON.stringify({ state: 'completed' });
    const entries = [
      { name: id, tenant: 'task:', context: contextId, time, data },
      { name: `ended/${id}`, tenant: 'ended', context: hour, time, data: id },
    ];
    yield { id, records: own, entries };
  }
}

async function serve(backend) {
  const { createTaskServer } = await import('../src/index.js');
  const { taskStore } = await import('../src/store/index.js');
  const execute = (ctx) =>
    void ctx.emitArtifact({ artifactId: 'result', parts: [{ text: 'done' }] });
  const agent = createTaskServer(
    { card: { name: 'bench' }, execute },
    { store: taskStore({ backend, retention: 0 }) },
  );
  const http = createServer(agent.handle).listen(0, '127.0.0.1');
  await once(http, 'listening');
  const url = `http://127.0.0.1:${http.address().port}/`;
  const ask = async (method, params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const { result, error } = await (
      await fetch(url, { method: 'POST', headers: HEADERS, body })
    ).json();
    if (error) throw new Error(error.message);
    return result;
  };
  const close = async () => {
    await agent.close();
    http.closeAllConnections();
    http.close();
  };
  return { ask, close };
}

const message = () => ({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'go' }] },
});

/** One process: fills a backend, and measures. */
async function measure(name, count, where) {
  const opened = await BACKENDS[name](where);
  const first = await serve(opened.backend);
  const { task } = await first.ask('SendMessage', message());
  const records = await opened.backend.read(task.id, 0);
  await first.close();
  const before = await opened.bytes();
  const backend = await opened.fill(copiesOf(records, count));
  const bytes = ((await opened.bytes()) - before) / count;
  const { ask, close } = await serve(backend);
  const some = () => Math.floor(Math.random() * count);
  let nextPageToken;
  const operations = {
    task: () => ask('SendMessage', message()),
    get: () => ask('GetTask', { id: `task-${some()}` }),
    context: () => ask('ListTasks', { contextId: `context-${Math.floor(some() / TOGETHER)}` }),
    first: async () => ({ nextPageToken } = await ask('ListTasks', {})),
    next: () => ask('ListTasks', { pageToken: nextPageToken }),
    scan: () => backend.list({ tenant: 'processes', limit: 1000 }),
  };
  const times = Object.fromEntries(Object.keys(operations).map((what) => [what, []]));
  // The first few warm up.
  for (let sample = -5; sample < SAMPLES; sample++)
    for (const [what, run] of Object.entries(operations)) {
      const began = performance.now();
      await run();
      if (sample >= 0) times[what].push(performance.now() - began);
    }
  process.send({
    bytes,
    ...Object.fromEntries(Object.entries(times).map(([what, all]) => [what, median(all)])),
  });
  await close();
  process.exit();
}

// --- All of them -------------------------------------------------------------------------------------

async function run(name, count, where) {
  const child = fork(fileURLToPath(import.meta.url), [name, String(count), String(where)], {
    execArgv: ['--expose-gc', '--max-old-space-size=12000'],
  });
  const [found] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => {
      throw new Error(`${name} with ${count} tasks has ended too early`);
    }),
  ]);
  await once(child, 'exit');
  return found;
}

const digits = (value) => Number(value.toPrecision(2)).toLocaleString('en');

async function main() {
  const most = Number(/--most=(\d+)/.exec(process.argv.join(' '))?.[1] ?? SIZES.at(-1));
  const { NatsServer } = await import('../tests/fleet/nats-server.js');
  const { putInto } = await import('../../../tests/bench/page.js');
  const hasSqlite = await import('node:sqlite').catch(() => undefined);
  const folder = mkdtempSync(join(tmpdir(), 'abp-bench-'));
  const rows = [];
  for (const name of Object.keys(BACKENDS)) {
    if (name === 'SQLite' && !hasSqlite) continue;
    let base;
    for (const count of SIZES) {
      if (count > most || (name === 'NATS' && count > MOST_ON_NATS)) continue;
      const nats = name === 'NATS' ? await new NatsServer().start() : undefined;
      const found = await run(name, count, nats?.port ?? join(folder, `${count}`));
      await nats?.close();
      const cells = COLUMNS.map(([key]) =>
        base ? `${digits(found[key] / base[key])} ×` : `${digits(found[key])} ms`,
      );
      base ??= found;
      rows.push([name, count.toLocaleString('en'), ...cells, digits(found.bytes)]);
      console.log(rows.at(-1).join(' | '));
    }
  }
  rmSync(folder, { recursive: true });
  const head = ['', 'tasks stored', ...COLUMNS.map(([, title]) => title), 'bytes a task'];
  const table = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`);
  if (process.argv.includes('--write'))
    await putInto(new URL('../../../docs/a2a-fleet.md', import.meta.url), {
      many: table.join('\n'),
    });
}

const [, , name, count, where] = process.argv;
if (name in BACKENDS) await measure(name, Number(count), where);
else await main();
