// The cost of an agent's operations with many stored tasks: in memory, in a file of SQLite (from
// Node 22.13 on) and on NATS. Each number of tasks has a process of its own, and they take turns;
// the tasks are copies of one that the agent has worked on. Prints ms at the smallest number, and
// the others as its multiples.
//
//   npm run bench:fleet -- --many [--write] [--most=100000]
//
//   --write   puts the table into packages/a2a-store/docs/a2a-fleet.md
//   --most    the largest number of tasks (100000; at most 1000000)
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SIZES = [1e3, 1e4, 1e5, 1e6];
const MOST = 1e5;
/** Filling more would take too long on NATS. */
const MOST_ON_NATS = 1e5;
/** Tasks with a rare state or user; they are evenly spread. */
const FEW = 3;
const ROUNDS = 40;
/** Warm-up rounds. */
const WARM = 3;
/** Tasks of a context. */
const TOGETHER = 10;
const HEADERS = { 'content-type': 'application/json', 'a2a-version': '1.0' };
const COLUMNS = [
  ['task', 'one more task'],
  ['get', 'get'],
  ['context', 'list of a context'],
  ['first', "a list's first page"],
  ['next', 'its next page'],
  ['few', `list of a state that ${FEW} tasks have`],
  ['own', `list of a user who may see ${FEW} tasks`],
  ['turn', 'the longest that others wait meanwhile'],
  ['scan', 'what a process looks at each few seconds'],
];

/** @param {number[]} numbers */
const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

// --- A process -----------------------------------------------------------------------------------

/** Opens, fills and measures a backend, by name. */
const BACKENDS = {
  async memory() {
    const { memoryBackend } = await import('../src/index.js');
    const backend = memoryBackend({ maxStored: Infinity });
    return { backend, fill: (tasks) => fillByItself(backend, tasks, 1), bytes: heapUsed };
  },
  async SQLite(path) {
    const { sqliteBackend } = await import('../src/index.js');
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
        const entry = database.prepare(
          'INSERT INTO entries (task, tenant, context, time, state, data, seq) VALUES (?, ?, ?, ?, ?, ?, ?)',
        );
        for (const { id, records, entries } of tasks) {
          records.forEach((data, i) => record.run(id, i + 1, data));
          for (const { name, tenant, context, time, state = '', data } of entries)
            entry.run(name, tenant, context, time, state, data, 1);
        }
        database.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
        database.close();
        return sqliteBackend(path);
      },
      bytes: () => statSync(path).size,
    };
  },
  async NATS(port) {
    const { natsBackend } = await import('../src/index.js');
    const { connect } = await import('@nats-io/transport-node');
    const jetstream = await import('@nats-io/jetstream');
    const connection = await connect({ servers: `127.0.0.1:${port}`, maxReconnectAttempts: -1 });
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
    // Not `for … of`: the first loop to leave would close the shared iterator.
    for (let task; (task = tasks.next().value);) {
      const { id, records, entries } = task;
      let last = 0;
      for (const data of records) last = await backend.append(id, data, last);
      for (const { name, ...entry } of entries) await backend.note(name, entry, 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  return backend;
}

/**
 * Copies of a task that an agent has worked on: its records with new ids, and its entries.
 */
function* copiesOf(records, count) {
  const since = Date.now();
  const hour = `${Math.floor(since / 3_600_000)}`;
  for (let i = 0; i < count; i++) {
    const id = `task-${i}`;
    const contextId = `context-${Math.floor(i / TOGETHER)}`;
    const isOfFew = i % Math.floor(count / FEW) === 0 && i / Math.floor(count / FEW) < FEW;
    const user = isOfFew ? 'ann' : 'bob';
    const state = isOfFew ? 'failed' : 'completed';
    const time = since - count + i;
    const timestamp = new Date(time).toISOString();
    const own = records.map(({ data }, place) => {
      const record = JSON.parse(data);
      record.id = `${id}-${place}`;
      for (const { origin, status } of record.e) {
        if (origin) Object.assign(origin, { contextId, user });
        if (status?.state === 'completed') Object.assign(status, { state, timestamp });
      }
      return JSON.stringify(record);
    });
    const data = JSON.stringify({ state, by: [user] });
    const entries = [
      { name: id, tenant: 'task:', context: contextId, time, state, data },
      { name: `ended/${id}`, tenant: 'ended', context: hour, time, data: id },
    ];
    yield { id, records: own, entries };
  }
}

async function serve(backend, user = 'guest', more = {}) {
  const { createTaskServer } = await import('@abp-bridge/a2a');
  const { taskStore } = await import('../src/index.js');
  const execute = (ctx) =>
    void ctx.emitArtifact({ artifactId: 'result', parts: [{ text: 'done' }] });
  const agent = createTaskServer(
    { card: { name: 'bench' }, execute },
    { store: taskStore({ backend, retention: 0 }), ...more },
  );
  const http = createServer((request, response) => {
    request.user = user;
    return agent.handle(request, response);
  }).listen(0, '127.0.0.1');
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

/** @param {{ tasks: object[], totalSize: number }} page */
function checkFew({ tasks, totalSize }) {
  if (tasks.length !== FEW || totalSize !== FEW) throw new Error(`${tasks.length} of ${totalSize}`);
}

/** The longest turn of the event loop. */
class Turns {
  #longest = 0;
  #ended = false;

  constructor() {
    let last = performance.now();
    const turn = () => {
      const now = performance.now();
      this.#longest = Math.max(this.#longest, now - last);
      last = now;
      if (!this.#ended) setImmediate(turn);
    };
    setImmediate(turn);
  }

  end() {
    this.#ended = true;
    return this.#longest;
  }
}

/** One process: fills a backend, and runs each operation once for each message. */
async function serveRounds(name, count, where) {
  const opened = await BACKENDS[name](where);
  const first = await serve(opened.backend);
  const { task } = await first.ask('SendMessage', message());
  const records = await opened.backend.read(task.id, 0);
  await first.close();
  const before = await opened.bytes();
  const backend = await opened.fill(copiesOf(records, count));
  const bytes = ((await opened.bytes()) - before) / count;
  const { ask, close } = await serve(backend);
  const authorize = (task, access, { user }) => task.user === user;
  const guarded = await serve(backend, 'ann', { authorize });
  const some = () => Math.floor(Math.random() * count);
  let nextPageToken;
  const operations = {
    task: () => ask('SendMessage', message()),
    get: () => ask('GetTask', { id: `task-${some()}` }),
    context: () => ask('ListTasks', { contextId: `context-${Math.floor(some() / TOGETHER)}` }),
    first: async () => ({ nextPageToken } = await ask('ListTasks', {})),
    next: () => ask('ListTasks', { pageToken: nextPageToken }),
    few: async () => checkFew(await ask('ListTasks', { status: 'TASK_STATE_FAILED' })),
    own: async () => checkFew(await guarded.ask('ListTasks', {})),
    scan: () => backend.leases(1000),
  };
  process.on('message', async () => {
    const times = {};
    for (const [what, run] of Object.entries(operations)) {
      const began = performance.now();
      const turns = what === 'own' ? new Turns() : undefined;
      await run();
      times[what] = performance.now() - began;
      if (turns) times.turn = turns.end();
    }
    process.send(times);
  });
  const end = () => Promise.all([close(), guarded.close()]).then(() => process.exit());
  process.on('disconnect', () => void end());
  process.send({ bytes });
}

// --- All of them ---------------------------------------------------------------------------------

class Filled {
  /** @type {Record<string, number[]>} */
  times = Object.fromEntries(COLUMNS.map(([key]) => [key, []]));
  bytes = 0;

  constructor(name, count, where) {
    this.count = count;
    this.child = fork(fileURLToPath(import.meta.url), [name, String(count), String(where)], {
      execArgv: ['--no-warnings', '--expose-gc', '--max-old-space-size=12000'],
    });
  }

  async #told() {
    const [told] = await Promise.race([
      once(this.child, 'message'),
      once(this.child, 'exit').then(() => {
        throw new Error(`the process with ${this.count} tasks has ended too early`);
      }),
    ]);
    return told;
  }

  async ready() {
    ({ bytes: this.bytes } = await this.#told());
  }

  async round(counts) {
    const told = this.#told();
    this.child.send('round');
    for (const [what, ms] of Object.entries(await told)) if (counts) this.times[what].push(ms);
  }

  async end() {
    const ended = once(this.child, 'exit');
    this.child.disconnect();
    await ended;
  }
}

const digits = (value) => Number(value.toPrecision(2)).toLocaleString('en');

async function main() {
  const most = Number(/--most=(\d+)/.exec(process.argv.join(' '))?.[1] ?? MOST);
  const { NatsServer } = await import('../tests/fleet/nats-server.js');
  const { putInto } = await import('../../../tests/bench/page.js');
  const hasSqlite = await import('node:sqlite').catch(() => undefined);
  const folder = mkdtempSync(join(tmpdir(), 'abp-bench-'));
  const rows = [];
  for (const name of Object.keys(BACKENDS)) {
    if (name === 'SQLite' && !hasSqlite) continue;
    const sizes = SIZES.filter((n) => n <= Math.min(most, name === 'NATS' ? MOST_ON_NATS : most));
    const servers = [];
    const all = [];
    for (const count of sizes) {
      if (name === 'NATS') servers.push(await new NatsServer().start());
      const one = new Filled(name, count, servers.at(-1)?.port ?? join(folder, `${count}`));
      all.push(one);
      await one.ready();
    }
    for (let round = -WARM; round < ROUNDS; round++)
      for (const one of round % 2 ? all.toReversed() : all) await one.round(round >= 0);
    for (const { count, times, bytes } of all) {
      const cells = COLUMNS.map(([key]) => {
        const [ms, base] = [median(times[key]), median(all[0].times[key])];
        return count === SIZES[0] ? `${digits(ms)} ms` : `${digits(ms / base)} ×`;
      });
      rows.push([name, count.toLocaleString('en'), ...cells, digits(bytes)]);
      console.log(rows.at(-1).join(' | '));
    }
    for (const one of all) await one.end();
    for (const server of servers) await server.close();
  }
  rmSync(folder, { recursive: true });
  const head = ['', 'tasks stored', ...COLUMNS.map(([, title]) => title), 'bytes a task'];
  const table = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`);
  if (process.argv.includes('--write'))
    await putInto(new URL('../../a2a-store/docs/a2a-fleet.md', import.meta.url), {
      many: table.join('\n'),
    });
}

const [, , name, count, where] = process.argv;
if (name in BACKENDS) await serveRounds(name, Number(count), where);
else await main();
