// Sessions that are opened, used and broken at random, over every way there is: each call ends, and
// of a session that has ended nothing is left. `npm run soak` makes a hundred thousand by each way;
// SEED says which, WAY chooses those whose names have it.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { coreMemory, held, objects } from './held.js';
import { CONNECTIONS } from './session-connections.js';
import { MemorySamples, turn } from './memory.js';
import { random } from '../differential/scripts.js';

const SESSIONS = Number(process.env.SESSIONS ?? 300);
const SEED = Number(process.env.SEED ?? 1);
/** Sessions at once. */
const GROUP = 20;
const SAMPLES = 12;
/**
 * Bytes by which the memory of a core may grow late in a run: of each session a few hundred bytes
 * would be more.
 */
const CHANCE = 4 * 65_536;
/** ms in which whatever has ended is gone, however busy the machine is. */
const PATIENCE = 600_000;

const turns = async (/** @type {number} */ count) => {
  while (count--) await turn();
};

/**
 * @template T
 * @param {Promise<T>} promise
 * @param {() => string} what
 * @returns {Promise<T>} rejects if it takes for ever
 */
async function soon(promise, what) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`it never ended: ${what()}`)), PATIENCE);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Waits until what is under way has ended.
 * @param {object} expected what is held then
 */
async function quiet(expected) {
  for (const end = performance.now() + PATIENCE; performance.now() < end;) {
    if (isDeepStrictEqual(held(), expected)) break;
    await turn();
  }
  assert.deepEqual(held(), expected, 'what is held is what was held at the start');
}

// Where both ends of a way are plain objects, nothing keeps the process.
const alive = setInterval(() => {}, PATIENCE);
after(() => clearInterval(alive));

for (const [name, { begin, ends: known, costs = 1 }] of Object.entries(CONNECTIONS)) {
  if (!name.includes(process.env.WAY ?? '')) continue;
  const count = Math.max(Math.ceil(SESSIONS / costs / GROUP), SAMPLES + 1) * GROUP;
  test(`${name}: of ${count.toLocaleString('en')} sessions that are broken at random nothing is left`, async () => {
    const pick = random(SEED);
    /** @type {Record<string, number>} */
    const ends = {};
    /** @type {Record<string, number>} */
    const broken = {};
    let made = 0;
    let calls = 0;

    /**
     * @param {import('./session-connections.js').Group} group
     * @param {boolean} breaksAll whether all of its sessions are broken at once
     * @param {string} id
     * @param {() => void} opened called when it has begun
     */
    async function session(group, breaksAll, id, opened) {
      // The first sessions load parts, so that a call may begin in the session that comes next.
      const isFirst = made <= GROUP;
      const { uses, breaks, disturbs, close } = await group.open();
      opened();
      const stop = new AbortController();
      const events = { ...breaks, ...disturbs, nothing() {} };
      const how = Object.keys(events)[pick(Object.keys(events).length)];
      broken[how] = (broken[how] ?? 0) + 1;
      // What is broken ends without anybody's signal.
      const isBroken = how in breaks || breaksAll;
      /** @type {Map<string, Promise<string>>} */
      const open = new Map();
      const use = (/** @type {string} */ what, /** @type {AbortSignal | undefined} */ signal) => {
        const key = `${what} ${calls}`;
        open.set(
          key,
          uses[what]({ signal, id: `call ${calls}` }).then((end) => {
            ends[end] = (ends[end] ?? 0) + 1;
            open.delete(key);
            return end;
          }),
        );
        calls++;
        return open.get(key);
      };
      const names = Object.keys(uses);
      for (let n = 1 + pick(5); n; n--) {
        void use(
          names[pick(names.length)],
          isBroken && !isFirst && pick(2) ? undefined : stop.signal,
        );
        if (pick(4) === 0) await turns(pick(3));
      }
      await turns(pick(5));
      try {
        await events[how]();
      } catch (error) {
        // To connect anew is in vain where the app has gone.
        assert.ok(error.code in { DISCONNECTED: 1, TRANSPORT_ERROR: 1, CANCELLED: 1 }, error);
      }
      if (!isBroken || isFirst || pick(2)) stop.abort();
      const said = () => `${[...open.keys()]} after: ${how}${breaksAll ? ', all' : ''} (${id})`;
      await soon(Promise.all(open.values()), said);
      await use('echo', undefined); // of a session that has ended, or of the next
      await close();
      assert.deepEqual(getEventListeners(stop.signal, 'abort'), [], said());
    }

    async function oneGroup() {
      const group = await begin();
      const breaksAll = group.breakAll !== undefined && pick(3) === 0;
      let unopened = GROUP;
      let allOpened = () => {};
      const opening = new Promise((resolve) => (allOpened = () => resolve(undefined)));
      const opened = () => --unopened || allOpened();
      const running = Array.from({ length: GROUP }, () =>
        session(group, breaksAll, `${made++}`, opened),
      );
      if (breaksAll) running.push(opening.then(() => turns(pick(10))).then(group.breakAll));
      const failed = (await Promise.allSettled(running)).find(({ reason }) => reason);
      await group.close();
      if (failed) throw /** @type {PromiseRejectedResult} */ (failed).reason;
    }

    await oneGroup(); // what is loaded once is loaded now
    await turns(10);
    const before = held();
    const memory = new MemorySamples(count, SAMPLES);
    /** Of the cores, at each sample. @type {number[][]} */
    const bytes = [];
    /** @type {object | undefined} */
    let early;
    while (made < count) {
      await oneGroup();
      if (!memory.isDue(made)) continue;
      await quiet(before);
      await memory.take(made);
      bytes.push(coreMemory());
      if (bytes.length === SAMPLES / 3) early = objects();
    }
    console.log(
      `${name}: ${calls} calls ${JSON.stringify(ends)}, sessions ${JSON.stringify(broken)}\n${memory}, cores ${bytes.at(-1)} bytes`,
    );
    for (const end of Object.keys(ends))
      assert.ok(end === 'completed' || known.includes(end), `a call ended as ${end}`);
    assert.deepEqual(objects(), early, 'of no kind are there more objects');
    // Which sessions overlap is chance, so that the most that is taken at once rises a little.
    const [half, last] = [bytes[SAMPLES / 2 - 1], bytes.at(-1)];
    assert.equal(last.length, half.length, 'no core was given up');
    for (const [i, size] of last.entries())
      assert.ok(size <= half[i] + CHANCE, `${bytes.join(' | ')}`);
    memory.assertFlat();
  });
}
