// Three processes behind a round robin, on real NATS servers. Whatever happens to them, each task
// has exactly one end, told alike by its log, its streams and all answers, and what executors did
// agrees with it.
import assert from 'node:assert/strict';
import { after, test as nodeTest } from 'node:test';
import * as jetstream from '@nats-io/jetstream';
import { natsBackend } from '../../src/index.js';
import { Fleet, Valve, answerTo } from './fleet.js';
import { NatsServer, startCluster } from './nats-server.js';
import { isEnd } from './states.js';

/**
 * Tasks of each test, unless FLEET_TASKS says how many: of the first one, and of those in whose
 * midst something happens.
 */
const TASKS = Number(process.env.FLEET_TASKS ?? 120);
const DURING = Number(process.env.FLEET_TASKS ?? 30);
const test = (name, run) => nodeTest(name, { timeout: 600_000 + TASKS * 1000 }, run);
/**
 * Ms: a process that hangs for longer is replaced. On a busy machine the others must not hang for
 * so long.
 */
const SHORT_TERM = 10_000;

const server = await new NatsServer().start();
after(() => server.close());
let namespaces = 0;

/**
 * @param {any} t
 * @param {object} [options] of the agents
 * @param {{ on?: NatsServer[], ports?: number[] }} [servers]
 */
async function startFleet(t, options = {}, { on = [server], ports } = {}) {
  const namespace = `fleet${namespaces++}`;
  const connection = await on[0].connect(on.slice(1));
  const replicas = on.length;
  let backend;
  // Servers of a cluster need a while until one leads.
  while (!backend)
    backend = await natsBackend({
      connection,
      jetstream,
      namespace,
      replicas,
      timeout: 2000,
    }).catch((error) => {
      if (replicas === 1) throw error;
    });
  t.after(() => backend.close());
  const fleet = new Fleet(backend, { namespace, replicas, ...options });
  t.after(() => fleet.close());
  const all = on.map(({ port }) => `127.0.0.1:${port}`);
  await fleet.start([0, 1, 2].map((i) => (ports?.[i] ? [`127.0.0.1:${ports[i]}`] : all)));
  return fleet;
}

const every = (count, run) => Promise.all(Array.from({ length: count }, (_, i) => run(i)));
const count = (ended, state) => ended.filter((task) => task.state === state).length;

test('tasks behind a round robin, a third of them cancelled through whichever process is next', async (t) => {
  const fleet = await startFleet(t);
  const ended = await every(TASKS, (i) =>
    // Every other one of these is over sooner than the cancel can be there, or nearly so.
    fleet.run({ steps: i % 6 === 0 ? 100_000 : 5, ms: 1 + (i % 20) }, { cancel: i % 3 === 0 }),
  );
  await fleet.check();
  assert.equal(fleet.endsOf.size, TASKS);
  assert.equal(count(ended, 'completed') + count(ended, 'canceled'), TASKS);
  assert.ok(count(ended, 'completed') >= TASKS - Math.ceil(TASKS / 3));
  assert.ok(count(ended, 'canceled') > 0);
});

/** The tasks work for two seconds, whatever their number, and do not swamp the machine. */
const STEPS = Math.max(8, Math.round(1200 / DURING));

/**
 * Tasks that work until something happens, and then some. Every third is cancelled meanwhile,
 * through any process.
 */
async function during(fleet, happens) {
  let begun = 0;
  let all = () => {};
  const running = new Promise((resolve) => {
    all = () => resolve(undefined);
  });
  const tasks = every(DURING, (i) =>
    fleet.run(
      { steps: STEPS, ms: 2000 / STEPS },
      { cancel: i % 3 === 0 && running, begun: () => ++begun === DURING && all() },
    ),
  );
  await Promise.race([running, tasks]);
  await happens();
  return tasks;
}

/** Whether every task has completed, unless it was cancelled. */
function checkCompleted(ended) {
  const others = ended.filter(({ state }, i) => i % 3 !== 0 || state !== 'canceled');
  assert.equal(count(others, 'completed'), others.length);
}

test('a process is killed: its tasks fail, and others do not', async (t) => {
  const fleet = await startFleet(t, { term: SHORT_TERM });
  const [victim] = fleet.processes;
  const ended = await during(fleet, () => victim.end('SIGKILL'));
  await fleet.check();
  const owned = new Set(
    fleet
      .effects()
      .filter(({ process }) => process === victim.child.pid)
      .map(({ id }) => id),
  );
  assert.ok(owned.size > 0);
  // What was done before has ended as it had to.
  for (const { id, what } of fleet.effects()) if (what === 'done') owned.delete(id);
  for (const [i, { id, state }] of ended.entries())
    if (owned.has(id) && (i % 3 !== 0 || state !== 'canceled')) assert.equal(state, 'failed');
});

test('a process is killed: its tasks run again elsewhere, and complete', async (t) => {
  const fleet = await startFleet(t, { term: SHORT_TERM, onOrphan: 'rerun' });
  const ended = await during(fleet, () => fleet.processes[1].end('SIGKILL'));
  await fleet.check();
  checkCompleted(ended);
  assert.ok(fleet.effects().some(({ attempt }) => attempt > 1));
});

test('a process hangs for longer than its term, and wakes: it tells nothing wrong', async (t) => {
  const fleet = await startFleet(t, { term: SHORT_TERM, onOrphan: 'rerun' });
  const [sleeper, ...others] = fleet.processes;
  const ended = await during(fleet, async () => {
    await sleeper.stop();
    fleet.processes = others;
    // Until others have taken what it had.
    const asleep = new Set(
      fleet
        .effects()
        .filter(({ process }) => process === sleeper.child.pid)
        .map(({ id }) => id),
    );
    for (const id of asleep)
      for (;;) {
        const records = await answerTo(() => fleet.backend.read(id, 0));
        const events = records.flatMap(({ data }) => JSON.parse(data).e);
        const runs = events.filter(({ k }) => k === 'run');
        if (runs.length > 1 || events.some(({ status }) => status && isEnd(status.state))) break;
      }
    sleeper.wake();
    fleet.processes = [sleeper, ...others];
  });
  await fleet.check();
  checkCompleted(ended);
});

test('what a process publishes is held back, and let go when others have its tasks', async (t) => {
  const valve = await new Valve(server.port).open();
  t.after(() => valve.close());
  const fleet = await startFleet(
    t,
    { term: SHORT_TERM, onOrphan: 'rerun' },
    { ports: [valve.port] },
  );
  const [held] = fleet.processes;
  const ended = await during(fleet, async () => {
    valve.hold();
    const mine = new Set(
      fleet
        .effects()
        .filter(({ process }) => process === held.child.pid)
        .map(({ id }) => id),
    );
    while (
      fleet.effects().filter(({ id, process }) => mine.has(id) && process !== held.child.pid)
        .length === 0
    )
      await new Promise((resolve) => setTimeout(resolve, 50));
    valve.release();
  });
  await fleet.check();
  checkCompleted(ended);
});

test('the server restarts: tasks go on, and nothing is told wrong', async (t) => {
  const own = await new NatsServer().start();
  t.after(() => own.close());
  const fleet = await startFleet(t, {}, { on: [own] });
  const ended = await during(fleet, async () => {
    await own.stop('SIGTERM');
    await own.start();
  });
  await fleet.check();
  checkCompleted(ended);
});

test('a cluster of three loses one', async (t) => {
  const cluster = await startCluster();
  t.after(() => Promise.all(cluster.map((one) => one.close())));
  const fleet = await startFleet(t, {}, { on: cluster });
  const ended = await during(fleet, () => cluster[2].stop('SIGKILL'));
  await fleet.check();
  checkCompleted(ended);
});

test('a deployment: processes are told to end one after another, and every task completes', async (t) => {
  const fleet = await startFleet(t);
  const [first, second] = fleet.processes;
  const ended = await during(fleet, async () => {
    await first.end('SIGTERM');
    await second.end('SIGTERM');
  });
  await fleet.check();
  checkCompleted(ended);
  assert.deepEqual([first.child.exitCode, second.child.exitCode], [0, 0]);
});

// --- Away for longer than a lease, and then killed -----------------------------------------------

/**
 * Ms: whoever is without the server for two thirds of it has lost its lease. Either is right on a
 * busy machine.
 */
const BRIEF_TERM = 4000;
/** Tasks that work until the process is killed, or for some seconds where it is not. */
const LONG = { steps: 60, ms: 50 };

/**
 * Processes lose their leases, work on under other names, and all but one are killed then. Each
 * task must be found, and each cancel answered, all the same.
 * @param {any} t
 * @param {Fleet} fleet
 * @param {() => Promise<unknown>} away makes the server useless
 * @param {() => Promise<unknown>} back
 * @param {typeof fleet.processes} [losers] those that lose their leases
 */
async function loseLeases(t, fleet, away, back, losers = fleet.processes) {
  const before = await fleet.everywhere(LONG);
  const since = fleet.effects().length;
  await away();
  await fleet.everyProcess('aborted', since, losers);
  await back();
  let kill = () => {};
  const killed = new Promise((resolve) => {
    kill = () => resolve(undefined);
  });
  const again = await fleet.everywhere(LONG);
  const cancelled = await fleet.everywhere({ steps: 100_000, ms: 50 }, { cancel: killed });
  const [first, second] = fleet.processes;
  await Promise.all([first.end('SIGKILL'), second.end('SIGKILL')]);
  kill();
  const ended = await Promise.all([...before.tasks, ...again.tasks]);
  assert.equal(count(ended, 'completed'), ended.length);
  const ofCancelled = await Promise.all(cancelled.tasks);
  assert.equal(count(ofCancelled, 'canceled'), ofCancelled.length);
  await fleet.check();
}

test('the server is away for longer than a lease, and then processes are killed', async (t) => {
  const own = await new NatsServer().start();
  t.after(() => own.close());
  const fleet = await startFleet(t, { term: BRIEF_TERM, onOrphan: 'rerun' }, { on: [own] });
  await loseLeases(
    t,
    fleet,
    () => own.stop('SIGKILL'),
    () => own.start(),
  );
});

test('the server refuses entries while processes hang for longer than a lease, and then they are killed', async (t) => {
  const own = await new NatsServer().start();
  t.after(() => own.close());
  const fleet = await startFleet(t, { term: BRIEF_TERM, onOrphan: 'rerun' }, { on: [own] });
  const jsm = await jetstream.jetstreamManager(await own.connect());
  // Renewals have no content, and are stored.
  const limit = async (max_msg_size) => {
    const name = `${fleet.options.namespace}_state`;
    const { config } = await jsm.streams.info(name);
    await jsm.streams.update(name, { ...config, max_msg_size });
  };
  await loseLeases(
    t,
    fleet,
    async () => {
      await limit(1);
      for (const one of fleet.processes) await one.stop();
      // That it is long enough is seen by what they abort.
      await new Promise((resolve) => setTimeout(resolve, BRIEF_TERM));
      for (const one of fleet.processes) one.wake();
    },
    () => limit(-1),
  );
});

test('two of three processes hang for longer than their leases, and are killed when they work again', async (t) => {
  const fleet = await startFleet(t, { term: BRIEF_TERM, onOrphan: 'rerun' });
  const all = fleet.processes;
  const [first, second, third] = all;
  await loseLeases(
    t,
    fleet,
    async () => {
      const since = fleet.effects().length;
      for (const one of [first, second]) await one.stop();
      fleet.processes = [third];
      const taken = ({ what, attempt }) => what === 'begun' && attempt > 1;
      while (!fleet.effects().slice(since).some(taken))
        await new Promise((resolve) => setTimeout(resolve, 20));
      for (const one of [first, second]) one.wake();
    },
    async () => {
      fleet.processes = all;
    },
    [first, second],
  );
});
