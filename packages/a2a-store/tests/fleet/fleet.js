/**
 * Processes of a fleet behind a round robin, and a recorder that compares all that is told of their
 * tasks.
 */
import assert from 'node:assert/strict';
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTaskClient } from '@abp-bridge/a2a';
import { isEnd } from './states.js';

const script = new URL('agent.js', import.meta.url);

class Process {
  /** @type {import('node:child_process').ChildProcess} */
  child;
  url = '';

  /** @param {object} options of agent.js */
  constructor(options) {
    this.child = fork(script, [JSON.stringify(options)], { stdio: 'inherit' });
  }

  async ready() {
    const [port] = await once(this.child, 'message');
    this.child.disconnect();
    this.url = `http://127.0.0.1:${port}/`;
    return this;
  }

  get alive() {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** @param {NodeJS.Signals} signal */
  async end(signal) {
    if (!this.alive) return;
    const ended = once(this.child, 'exit');
    this.child.kill(signal);
    await ended;
  }

  async stop() {
    this.child.kill('SIGSTOP');
    const state = () => execFileSync('ps', ['-o', 'stat=', '-p', String(this.child.pid)]);
    while (!String(state()).startsWith('T')) await new Promise(setImmediate);
  }

  wake() {
    this.child.kill('SIGCONT');
  }
}

/** Stands between a process and its server, and holds back what the process says. */
export class Valve {
  #held = false;
  /** @type {Set<import('node:net').Socket>} */
  #sockets = new Set();
  #server = createServer((inner) => {
    const outer = connectTcp(this.to, '127.0.0.1');
    for (const [one, other] of [
      [inner, outer],
      [outer, inner],
    ]) {
      this.#sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
    outer.pipe(inner);
    inner.on('data', (data) => outer.write(data));
    if (this.#held) inner.pause();
    this.#inner.add(inner);
  });
  /** @type {Set<import('node:net').Socket>} */
  #inner = new Set();
  port = 0;

  /** @param {number} to a port */
  constructor(to) {
    this.to = to;
  }

  async open() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.port = /** @type {import('node:net').AddressInfo} */ (this.#server.address()).port;
    return this;
  }

  hold() {
    this.#held = true;
    for (const socket of this.#inner) socket.pause();
  }

  release() {
    this.#held = false;
    for (const socket of this.#inner) socket.resume();
  }

  close() {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

/**
 * While a server is lost, or another one becomes the leader, what is asked has no answer.
 * @template T
 * @param {() => Promise<T>} ask
 * @returns {Promise<T>}
 */
export async function answerTo(ask) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(/** @type {any} */ (error).retryable)) throw error;
    }
  }
}

/** What a log says became of a task's work, in order. */
const wordsOf = (events) =>
  events.flatMap(({ status, metadata = status?.message?.metadata }) => metadata?.outcome ?? []);

/**
 * What the log says became of a task's work is what its executors wrote down: the latest run of it,
 * where it ran again.
 */
function checkOutcome(id, words, effects) {
  const latest = Math.max(...effects.map(({ attempt }) => attempt));
  const has = (what) => effects.some((effect) => effect.what === what && effect.attempt === latest);
  assert.ok(words.length <= 1 || (words.length === 2 && words[0] === 'running'), `${id}: ${words}`);
  const word = words.at(-1);
  if (word === 'unstarted') assert.ok(!has('begun'), `${id} never began`);
  if (word === 'stopped') assert.ok(has('begun') && !has('done'), `${id} stopped midway`);
  if (word === 'finished') assert.ok(has('done'), `${id} ran to its end`);
}

export class Fleet {
  /** @type {Process[]} */
  processes = [];
  #folder = mkdtempSync(join(tmpdir(), 'abp-fleet-'));
  #turn = 0;
  #effects = join(this.#folder, 'effects');
  /** What was told of each task, by its id. @type {Map<string, Set<string>>} */
  endsOf = new Map();

  /**
   * @param {import('../../../a2a/src/store/backends/backend.js').Backend} backend to read the logs
   * @param {object} options of agent.js
   */
  constructor(backend, options) {
    this.backend = backend;
    this.options = { effects: this.#effects, term: 60_000, ...options };
    writeFileSync(this.#effects, '');
  }

  /** @param {string[]} servers for each process */
  async start(servers) {
    const started = servers.map((server) =>
      new Process({ ...this.options, servers: [server].flat() }).ready(),
    );
    this.processes = await Promise.all(started);
    return this;
  }

  /** Each request goes to the next process. @type {typeof fetch} */
  fetch = (url, init) => {
    const living = this.processes.filter(({ alive }) => alive);
    const { pathname } = new URL(String(url));
    return fetch(new URL(pathname, living[this.#turn++ % living.length].url), init);
  };

  client() {
    const limits = { retry: 50, outage: 60_000, grace: 60_000 };
    // The card is that of the process that was asked for it.
    return createTaskClient('http://127.0.0.1:1/', {
      fetch: this.fetch,
      endpoints: () => true,
      limits,
    });
  }

  /**
   * @param {string} id
   * @param {string} state
   * @param {string} where
   */
  #tell(id, state, where) {
    if (!isEnd(state)) return;
    const states = this.endsOf.get(id) ?? new Set();
    this.endsOf.set(id, states.add(`${state}`));
    assert.equal(
      states.size,
      1,
      `task ${id} was told to have ended as ${[...states]}, last by ${where}`,
    );
  }

  /**
   * Begins a task, and follows it to its end.
   * @param {object} metadata of the request: `steps` and `ms`
   * @param {{ cancel?: boolean | Promise<unknown>, begun?: (id: string) => unknown }} [options]
   *   whether it is cancelled, or when
   */
  async run(metadata, { cancel = false, begun } = {}) {
    const client = this.client();
    const stream = client.subscribe({ parts: [{ text: 'go' }] }, { metadata });
    let id = '';
    let answer;
    for await (const event of stream) {
      if (!id && stream.task) {
        ({ id } = stream.task);
        await begun?.(id);
        if (cancel)
          answer = Promise.resolve(cancel)
            .then(() => answerTo(() => client.cancel(id)))
            .then(
              ({ status }) => status.state,
              ({ code }) => code,
            );
      }
      if (event.kind === 'status') this.#tell(id, event.status.state, 'a stream');
    }
    const state = /** @type {any} */ (stream.task).status.state;
    this.#tell(id, state, 'a task');
    const answered = await answer;
    if (answered && isEnd(answered)) this.#tell(id, answered, 'the answer to a cancel');
    else if (answered) assert.equal(answered, 'TASK_NOT_CANCELABLE');
    if (answered === 'TASK_NOT_CANCELABLE') assert.notEqual(state, 'canceled');
    return { id, state };
  }

  effects() {
    return readFileSync(this.#effects, 'utf8')
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  /**
   * Waits until the executors of each process have written something down.
   * @param {string} what
   * @param {number} since how many effects there were before
   * @param {Process[]} [processes] all that live
   */
  async everyProcess(what, since, processes = this.processes.filter(({ alive }) => alive)) {
    const pids = processes.map(({ child }) => child.pid);
    const has = (pid) =>
      this.effects()
        .slice(since)
        .some((effect) => effect.process === pid && effect.what === what);
    while (!pids.every(has)) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  /**
   * Begins tasks until each process that lives works on one.
   * @param {object} metadata of the requests
   * @param {object} [options] of `run`
   * @returns {Promise<{ tasks: Promise<{ id: string, state: string }>[] }>}
   */
  async everywhere(metadata, options = {}) {
    const since = this.effects().length;
    const tasks = [];
    let over = false;
    const all = this.everyProcess('begun', since).then(() => (over = true));
    while (!over) {
      await new Promise((resolve) => {
        tasks.push(this.run(metadata, { ...options, begun: resolve }));
        void tasks
          .at(-1)
          .finally(() => resolve(undefined))
          .catch(() => {});
      });
      // It is written down a moment later.
      await Promise.race([all, new Promise((resolve) => setTimeout(resolve, 100))]);
    }
    return { tasks };
  }

  /** The events of a task, once it is known what became of its work. */
  async #settledLog(id) {
    for (;;) {
      const records = await answerTo(() => this.backend.read(id, 0));
      const events = records.flatMap(({ data }) => JSON.parse(data).e);
      if (wordsOf(events).at(-1) !== 'running') return events;
    }
  }

  /**
   * Compares what was told with the logs, with what each process says now, and with the effects.
   */
  async check() {
    const effects = this.effects();
    for (const [id, [state]] of this.endsOf) {
      const events = await this.#settledLog(id);
      const ends = events.filter(({ k, status }) => k === 'status' && isEnd(status.state));
      assert.deepEqual(
        ends.map(({ status }) => status.state),
        [state],
        `the log of ${id}`,
      );
      const after = events.slice(events.indexOf(ends[0]) + 1);
      assert.deepEqual(
        after.filter(({ k }) => k !== 'wish' && k !== 'outcome'),
        [],
        'nothing comes after the end',
      );
      const ofTask = effects.filter((effect) => effect.id === id);
      const words = wordsOf(events);
      checkOutcome(id, words, ofTask);
      if (state === 'completed')
        assert.ok(
          ofTask.some(({ what }) => what === 'done'),
          `${id} was done`,
        );
      for (const { url, alive } of this.processes) {
        if (!alive) continue;
        const task = await answerTo(() => createTaskClient(url, { version: '1.0' }).get(id));
        assert.equal(task.status.state, state, `${url} on ${id}`);
        assert.equal(task.status.outcome, words.at(-1), `${url} on the outcome of ${id}`);
      }
    }
  }

  async close() {
    for (const one of this.processes) one.wake();
    await Promise.all(this.processes.map((one) => one.end('SIGKILL')));
    rmSync(this.#folder, { recursive: true });
  }
}
