// Processes on a backend that refuses, hangs, is late or silent at every step, and that die at
// every step, by a clock that the test holds. Whatever happens: nothing begins in a process that
// others would not find gone, every task ends that a client was told of, all who are left tell the
// same of it, and of those who are gone nothing is left.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AbpError } from 'abp-bridge';
import { createTaskServer } from '@abp-bridge/a2a';
import { Membership } from '../../a2a/src/store/membership.js';
import { memoryBackend, taskStore } from '../src/index.js';
import { VERSIONS, plainState } from '../../a2a/tests/support/a2a.js';

const V1 = VERSIONS['1.0'];
const TERM = 15_000;
const TICK = TERM / 5;
/**
 * Histories with two faults that are tried of each kind of task. FLEET_HISTORIES=200 is for before
 * a release.
 */
const PAIRS = Number(process.env.FLEET_HISTORIES ?? 8);
/**
 * Of those with one fault, each so-manieth is tried: of the first kind, and of the others, which
 * have much in common with it.
 */
const [FIRST, OTHERS] = PAIRS > 100 ? [1, 1] : PAIRS >= 30 ? [1, 3] : [4, 12];

/** What can happen to what a process asks of the backend, or to the process. */
const FAULTS = [
  'refused', // it is not done
  'silent', // it is done, and nobody says so
  'late', // nobody says so, and it is done when others have looked
  'hangs', // it is done and answered after a term
  'stops', // it is done, and the process stops for longer than a term before it learns so
  'outage', // nothing is done for longer than a lease, for all processes
  'dies', // the process ends before it is done,
  'dies after', // after it,
  'dies, late', // or it is done when others have taken what the process had
];

const METHODS = [
  'append',
  'read',
  'forget',
  'renew',
  'lease',
  'leases',
  'release',
  'serve',
  'ask',
  'note',
  'list',
  'put',
  'get',
  'remove',
  'objects',
  'sweep',
];

const refusal = () => new AbpError('UNAVAILABLE', 'Refused', { retryable: true });
const silence = () => new AbpError('UNACKNOWLEDGED', 'Silence');

// The clock stands still while a core is loaded, which takes as long as it takes.
before(async () => {
  const agent = createTaskServer({ card: { name: 'First' }, execute() {} });
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: V1.get, params: { id: 'none' } });
  const headers = { 'content-type': 'application/json', ...V1.headers };
  await agent.fetch(new Request('http://127.0.0.1/', { method: 'POST', headers, body }));
  agent.close();
});

const kept = { now: performance.now, randomUUID: crypto.randomUUID, error: console.error };
after(() => {
  performance.now = kept.now;
  crypto.randomUUID = kept.randomUUID;
  console.error = kept.error;
});
// What fails on purpose is reported.
console.error = () => {};

/**
 * One history: processes, a client, and faults at some of the things that are asked of the backend.
 */
class History {
  backend = memoryBackend();
  /** Things that were asked so far. */
  asked = 0;
  dead = new Set();
  /** What is done when others have looked. @type {(() => unknown)[]} */
  late = [];
  /** What is answered at a time. @type {{ at: number, go: () => unknown }[]} */
  hanging = [];
  outageUntil = -Infinity;
  /** Until when processes are stopped. @type {Map<number, number>} */
  stoppedUntil = new Map();
  /** Tasks of which something was to be stored. @type {Set<string>} */
  logs = new Set();
  /** Until when the leases hold, by their names. @type {Map<string, number>} */
  leases = new Map();
  problems = [];
  effects = [];
  processes = [];
  log = [];

  /**
   * @param {any} t
   * @param {Map<number, string>} faults by the number of the thing that is asked
   */
  constructor(t, faults) {
    this.t = t;
    this.faults = faults;
    this.now = 1e6;
    t.mock.timers.reset();
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: 1e12 });
    let ids = 0;
    performance.now = () => this.now;
    crypto.randomUUID = () => `id-${String(++ids).padStart(6, '0')}`;
  }

  /**
   * The backend as a process has it.
   * @param {number} index
   */
  backendOf(index) {
    const { backend } = this;
    const own = { maxRecord: backend.maxRecord, watch: backend.watch.bind(backend), close() {} };
    for (const name of METHODS)
      own[name] = (...given) => this.ask(index, name, () => backend[name](...given));
    const { append, renew } = own;
    own.append = async (id, data, expected) => {
      this.logs.add(id);
      await this.#checkTaker(id, JSON.parse(data), expected);
      return append(id, data, expected);
    };
    own.renew = async (name, left) => {
      const asked = this.now;
      await renew(name, left);
      this.leases.set(name, left ? 0 : asked + (TERM * 2) / 3);
    };
    return own;
  }

  /**
   * Nobody takes a task from a process whose lease holds. A question is nobody's. Of two who take
   * it at once from one that is gone, the log refuses the second.
   * @param {string} id
   * @param {any} record
   * @param {number} expected
   */
  async #checkTaker(id, { by, epoch, e: events }, expected) {
    if (epoch < 2 || events[0]?.k === 'wish') return;
    const records = await this.backend.read(id, 0);
    if (records.at(-1)?.seq !== expected) return;
    const before = records.map(({ data }) => JSON.parse(data));
    const owner = before.findLast((one) => one.epoch > 0);
    const state = before.flatMap(({ e }) => e).findLast(({ status }) => status)?.status.state;
    if (!owner || owner.by === by || state === 'input-required') return;
    if (this.now < (this.leases.get(owner.by) ?? 0))
      this.problems.push(`${by} takes ${id} from ${owner.by}, which is not gone`);
  }

  /**
   * @param {number} index
   * @param {string} name
   * @param {() => any} apply
   */
  async ask(index, name, apply) {
    if (this.dead.has(index)) return new Promise(() => {});
    const number = this.asked++;
    const fault = this.faults.get(number);
    this.log.push(`${number} ${index} ${name}${fault ? ` ${fault}` : ''}`);
    if (fault === 'outage') this.outageUntil = this.now + TERM * 1.2;
    if (this.now < this.outageUntil) throw refusal();
    const wakes = this.stoppedUntil.get(index) ?? 0;
    if (wakes > this.now) return this.#answeredAt(wakes, index, apply);
    switch (fault) {
      case undefined:
        return this.#answered(index, apply);
      case 'stops': {
        const at = this.now + 1.5 * TERM;
        this.stoppedUntil.set(index, at);
        const done = Promise.resolve(apply());
        done.catch(() => {});
        return this.#answeredAt(at, index, () => done);
      }
      case 'refused':
        throw refusal();
      case 'silent':
        await apply();
        throw silence();
      case 'late':
        this.late.push(apply);
        throw silence();
      case 'hangs':
        return this.#answeredAt(this.now + TERM, index, apply);
      default:
        if (fault === 'dies after') await apply();
        if (fault === 'dies, late') this.late.push(apply);
        this.dead.add(index);
        return new Promise(() => {});
    }
  }

  /**
   * @param {number} index
   * @param {() => any} apply
   */
  async #answered(index, apply) {
    const answer = await apply();
    return this.dead.has(index) ? new Promise(() => {}) : answer;
  }

  /**
   * @param {number} at
   * @param {number} index
   * @param {() => any} apply
   */
  #answeredAt(at, index, apply) {
    return new Promise((resolve, reject) => {
      const go = () => this.#answered(index, apply).then(resolve, reject);
      this.hanging.push({ at, go });
    });
  }

  /** All that can go on without time going by does. */
  async settle() {
    for (let before = -1; before !== this.asked;) {
      before = this.asked;
      for (let i = 0; i < 4; i++) await new Promise(setImmediate);
    }
  }

  async advance(ticks = 1) {
    for (let i = 0; i < ticks; i++) {
      this.now += TICK;
      this.t.mock.timers.tick(TICK);
      const due = this.hanging.filter(({ at }) => at <= this.now);
      this.hanging = this.hanging.filter(({ at }) => at > this.now);
      for (const { go } of due) void go();
      await this.settle();
    }
  }

  join(text) {
    const index = this.processes.length;
    const store = taskStore({ backend: this.backendOf(index), term: TERM, retention: 0 });
    const agent = createTaskServer(
      {
        card: { name: 'Explored' },
        execute: async ({ task, signal, message, emitStatus }) => {
          if (this.dead.has(index)) return new Promise(() => {});
          await this.#begins(index, task.id);
          const [said] = message.parts;
          if (text === 'ask' || (text === 'answer' && said.text === 'go'))
            return emitStatus('input-required');
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          signal.throwIfAborted();
        },
      },
      { store, limits: { rememberFor: 4 * TERM } },
    );
    this.processes.push(agent);
    return agent;
  }

  /**
   * Something begins: others must find what this process leaves.
   * @param {number} index
   * @param {string} id
   */
  async #begins(index, id) {
    this.effects.push({ index, id });
    const records = (await this.backend.read(id, 0)).map(({ data }) => JSON.parse(data));
    const { by } = records.findLast(({ epoch }) => epoch > 0) ?? {};
    const leases = await this.backend.leases(1000);
    if (!leases.some(({ process, left }) => process === by && !left))
      this.problems.push(`process ${index} begins ${id} as ${by}, and has no lease`);
    const duties = await this.backend.list({ tenant: `duties:${by}` });
    if (!duties.tasks.some(({ data }) => data === id))
      this.problems.push(`process ${index} begins ${id} as ${by}, which has not enlisted`);
  }

  /**
   * @param {number} index
   * @param {string} method
   * @param {object} params
   */
  async request(index, method, params) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const headers = { 'content-type': 'application/json', ...V1.headers };
    const request = new Request('http://127.0.0.1/', { method: 'POST', headers, body });
    return (await this.processes[index].fetch(request)).json();
  }

  get living() {
    return [...this.processes.keys()].filter((index) => !this.dead.has(index));
  }

  close() {
    for (const index of this.processes.keys()) this.dead.add(index);
    for (const agent of this.processes) agent.close();
  }
}

/**
 * A task of process 0, which dies at last. Two others are there, and one more comes later.
 * @param {any} t
 * @param {string} kind
 * @param {Map<number, string>} faults
 */
async function run(t, kind, faults) {
  const history = new History(t, faults);
  const { backend, problems } = history;
  try {
    for (let i = 0; i < 2; i++) history.join(kind);
    await history.settle();
    const configuration = { returnImmediately: true };
    /** Tasks that the client was told of. */
    const answeredIds = new Set();
    /** Messages that are not answered. */
    let open = 0;
    const send = () => {
      open++;
      const params = { message: V1.message('go'), configuration };
      const answered = history.request(0, V1.send, params);
      const takes = ({ result }) => result && answeredIds.add(result.task.id);
      void answered.then(takes, () => {}).finally(() => open--);
    };
    send();
    await history.settle();
    // What was refused comes again; and more comes while the process works.
    for (let i = 0; i < 8; i++) {
      if (!open && (answeredIds.size === 0 || (kind === 'work' && i % 2))) send();
      await history.advance();
    }
    const [first] = answeredIds;
    if (kind === 'answer' && first) {
      const message = { ...V1.message('this one'), taskId: first };
      void history.request(0, V1.send, { message, configuration }).catch(() => {});
    }
    if (kind === 'cancel' && first)
      void history.request(1, V1.cancel, { id: first }).catch(() => {});
    await history.settle();
    const length = history.asked;
    history.dead.add(0);
    await history.advance(1);
    history.join(kind);
    if (kind === 'ask') {
      // Those who found the question are replaced, too.
      await history.advance(9);
      history.dead.add(1);
    }
    await history.advance(9);
    for (const apply of history.late.splice(0)) await Promise.resolve(apply()).catch(() => {});
    await history.advance(14);
    for (const apply of history.late.splice(0)) await Promise.resolve(apply()).catch(() => {});
    // Whoever died by a fault is one too many for those who are left.
    if (history.living.length === 0) history.join(kind);
    await history.advance(14);
    const ids = new Set(answeredIds);
    for (const id of history.logs)
      if ((await backend.read(id, 0)).some(({ data }) => data.includes('"k":"new"'))) ids.add(id);
    for (const id of ids) {
      const states = [];
      for (const index of history.living) {
        let answer;
        void history.request(index, V1.get, { id }).then((got) => (answer = got));
        await history.settle();
        const { result } = answer ?? {};
        states.push(result ? plainState(result.status.state) : JSON.stringify(answer));
      }
      if (new Set(states).size > 1) problems.push(`${id} is told as ${states}`);
      const [state] = states;
      const fine = kind === 'work' ? ['failed'] : ['failed', 'canceled'];
      if (!fine.includes(state)) problems.push(`${id} is ${state} for ever`);
    }
    const names = (await backend.leases(1000)).map(({ process }) => process);
    if (names.length !== history.living.length) problems.push(`these leases are there: ${names}`);
    return { problems, length, log: history.log, effects: history.effects };
  } finally {
    history.close();
    await history.settle();
  }
}

/** The same histories each time. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

for (const kind of ['work', 'cancel', 'ask', 'answer'])
  test(
    `processes that die, and a backend that fails at every step: ${kind}`,
    { timeout: 600_000 },
    async (t) => {
      const check = async (/** @type {Map<number, string>} */ faults) => {
        const { problems, log } = await run(t, kind, faults);
        const what = [...faults].map(
          ([at, fault]) => `${fault} at ${log.find((line) => line.startsWith(`${at} `))}`,
        );
        assert.deepEqual(problems, [], what.join(', '));
      };
      const plain = await run(t, kind, new Map());
      assert.deepEqual(plain.problems, []);
      assert.ok(plain.effects.length > 0);
      for (let at = 0; at < plain.length; at++)
        for (const [which, fault] of FAULTS.entries())
          if ((at + which) % (kind === 'work' ? FIRST : OTHERS) === 0)
            await check(new Map([[at, fault]]));
      const next = random(7);
      for (let i = 0; i < PAIRS; i++)
        await check(new Map([0, 0].map(() => [next(plain.length), FAULTS[next(FAULTS.length)]])));
    },
  );

test('who was stopped while it looked at a lease takes nobody for gone by that', async () => {
  const backend = memoryBackend();
  let now = 0;
  let stopped = 0;
  const options = { term: TERM, now: () => now, answer: () => 'yes', onLose() {} };
  const other = new Membership(backend, options);
  await other.enter();
  const slow = /** @type {any} */ ({
    leases: (limit) => backend.leases(limit),
    // The answer is there, and read later.
    lease: async (name) => {
      const number = await backend.lease(name);
      now += stopped;
      return number;
    },
  });
  const watching = new Membership(slow, options);
  const gone = async () => {
    const names = [];
    for await (const name of watching.gone()) names.push(name);
    return names;
  };
  assert.deepEqual(await gone(), []);
  now += TERM / 5;
  stopped = 2 * TERM;
  assert.deepEqual(await gone(), []);
  await backend.renew(other.lease.name);
  stopped = 0;
  assert.deepEqual(await gone(), []);
  now += TERM;
  assert.deepEqual(await gone(), [other.lease.name]);
});
