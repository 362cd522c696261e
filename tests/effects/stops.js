/** Makes calls of handlers whose effects are known, stops them at random moments, and compares what is told with what stands. */
import { random } from '../differential/scripts.js';
import { contradiction } from './judge.js';
import { isStopped, makeCall, planOf, turns } from './calls.js';
import { handlersOf, turn } from './work.js';

/** @typedef {import('./judge.js').Told} Told */

/**
 * @typedef {object} Settings
 * @property {number} grace ms that the app waits for a handler that was told to stop
 * @property {number} room handlers that may run at once
 * @property {string} name of the session
 * @property {string} path of the database, for handlers elsewhere
 * @property {Promise<unknown>} whenReleased resolves when theirs that are stuck may go on
 */

/**
 * @typedef {object} Session Calls to one app, by one of the ways.
 * @property {import('./calls.js').Call} [call]
 * @property {() => Promise<unknown>} [pace] a turn of whoever calls
 * @property {(plan: import('./calls.js').Plan) => ReturnType<import('./calls.js').Call>} [make] makes a call elsewhere, where its stop and what is
 *   told of it are noted; in place of `call`
 * @property {(callId: string, settled: boolean) => Promise<Told>} [ask] what is told of a call to who asks for it later, in another session if this
 *   one was cut; `settled`: when its handler has ended
 * @property {import('./calls.js').Call} [again] makes a call that may have been made before, by its `idempotencyKey`
 * @property {boolean} [dies] whether a cut ends the handlers, too
 * @property {(below: (below: number) => number) => unknown} cut cuts the connection, or ends the app, without a word
 * @property {() => unknown} close
 */

/**
 * @typedef {object} Way
 * @property {(handlers: ReturnType<typeof handlersOf>, settings: Settings) => Promise<Session>} open
 * @property {number} [costs] how much longer a session takes than elsewhere: there are so many times fewer
 * @property {boolean} [slow] whether calls take longer to arrive than handlers to run, which are in this thread
 * @property {boolean} [foreign] whether nothing tells what became of a cancelled call
 * @property {boolean} [reports] whether the handler's own words come with the outcome
 * @property {boolean} [untimed] whether calls have no timeouts
 * @property {boolean} [waits] whether handlers that were told to stop are waited for in any case
 * @property {number} [callerGrace] ms after which a caller gives up on the answer to its cancel, where that is not for ever
 */

/** The grace period of apps that wait as long as it takes, and of those that do not, in ms. */
const PATIENT = 600_000;
const SHORT = 20;
const MAX_SESSION = 12;
/** What is asked for again. */
const UNSETTLED = ['running', 'unknown'];

let runs = 0;

/**
 * @param {Way} way
 * @param {import('./database.js').Database} database
 * @param {{ stops: number, seed: number }} options
 */
export async function makeStops(way, database, { stops, seed }) {
  /** @type {Record<string, number>} */
  const tally = {};
  /** @type {string[]} */
  const wrong = [];
  // One database may have the rows of many.
  const mine = `${++runs}/${seed}`;
  for (let session = 0, done = 0; done < stops; session++) {
    done += await oneSession(
      way,
      database,
      `${mine}.${session}`,
      random(seed + 7919 * session),
      tally,
      wrong,
    );
  }
  return { tally, wrong };
}

/**
 * @param {Way} way
 * @param {import('./database.js').Database} database
 * @param {string} name
 * @param {(below: number) => number} below
 * @param {Record<string, number>} tally
 * @param {string[]} wrong
 */
async function oneSession(way, database, name, below, tally, wrong) {
  const cut = below(3) === 0;
  const patient = below(2) === 0 || way.waits === true;
  const size = 1 + below(MAX_SESSION);
  const room = below(2) ? MAX_SESSION : 2;
  /** @type {(() => void)[]} */
  const held = [];
  let free = patient;
  let tellReleased = () => {};
  const whenReleased = new Promise((resolve) => (tellReleased = () => resolve(undefined)));
  const release = () => {
    free = true;
    tellReleased();
    for (const go of held) go();
  };
  /** @type {Map<string, () => void>} */
  const waiting = new Map();
  const begun = (/** @type {string} */ key) =>
    new Promise((resolve) => waiting.set(key, () => resolve(undefined)));
  const place = {
    write(/** @type {import('./work.js').Row} */ row) {
      database.write(row);
      if (row.at === 'begin') waiting.get(row.key)?.();
    },
    writeElsewhere: database.writeElsewhere,
    released: () => (free ? turn() : new Promise((resolve) => void held.push(resolve))),
  };
  const { path } = database;
  const settings = { name, path, whenReleased, grace: patient ? PATIENT : SHORT, room };
  if (free) release();
  const session = await way.open(handlersOf(place), settings);

  let isCut = false;
  const cutting = cut
    ? turns(below(12), session.pace).then(() => {
        isCut = true;
        database.write({ key: name, at: 'cut' });
        return session.cut(below);
      })
    : undefined;
  const { call, pace } = session;
  const caller = { write: database.write, pace, begun: way.slow ? begun : undefined };
  const make = session.make ?? ((plan) => makeCall(call, caller, plan));
  const plans = Array.from({ length: size }, (_, i) => ({
    ...planOf(`${name}.${i}`, below),
    keyed: session.again !== undefined && below(2) === 0,
    isJoined: below(2) === 0,
    isPatient: below(2) === 0,
  }));
  const repeat = ({ handler, key, seed }, callId = `${key} repeated`) =>
    session.again(handler, { key, seed }, { callId, idempotencyKey: key });
  const making = plans.map(async (plan) => {
    const told = make(plan);
    const joined = plan.keyed && plan.isJoined ? repeat(plan, `${plan.key} joined`) : undefined;
    return { ...plan, told: await told, joined };
  });
  // The rest may wait for places that handlers hold until they are released.
  const stopped = await Promise.all(making.filter((_, i) => isStopped(plans[i], way.untimed)));
  await cutting;
  /** @param {Awaited<typeof making[0]>[]} calls @param {boolean} settled whether who asks waits until the handler has ended */
  const ask = async (calls, settled) => {
    for (const call of calls) {
      const { key, told, isPatient } = call;
      if (!session.ask || isPatient !== settled || !UNSETTLED.includes(told.outcome)) continue;
      const rows = database.rows(key).slice();
      call.asked = { rows, told: await session.ask(key, settled) };
    }
  };
  await ask(stopped, false);
  release();
  const made = await Promise.all(making);
  await Promise.all(made.map(({ joined }) => joined));
  const keys = made.map(({ key }) => key);
  if (!isCut || !session.dies) await database.quiet(keys);
  await ask(made, true);
  const rows = new Map(keys.map((key) => [key, database.rows(key).slice()]));
  for (const call of made) if (call.keyed) call.repeated = await repeat(call);
  const [wasCut] = database.rows(name);
  for (const { key, handler, told, asked, joined, repeated } of made) {
    const seen = rows.get(key);
    const { order } = seen.find(({ at }) => at === 'told');
    const lost = wasCut?.order < order || told.waited >= way.callerGrace;
    const circumstances = { ...way, cut: lost, patient, joined: joined !== undefined };
    /** @type {(when: string, what: Told, rows: import('./work.js').Row[], more?: object) => void} */
    const check = (when, what, rows, more) => {
      const why = contradiction(rows, what, { ...circumstances, ...more });
      if (why) wrong.push(`${handler} ${key}${when}: ${why}: ${rows.map(rowText).join(', ')}`);
      const word = `${when} ${what.success ? 'success' : (what.outcome ?? 'untold')}`.trim();
      tally[word] = (tally[word] ?? 0) + 1;
    };
    /** What is told last is compared with all that stands. @type {typeof check} */
    const checkLast = (when, what, rows, more) => {
      const others = rows.filter(({ at }) => at !== 'told');
      check(when, what, [...others, { key, at: 'told', how: what.outcome }], more);
    };
    check('', told, seen);
    const later = await told.later;
    if (later) checkLast(' later', later, seen, { cut: isCut });
    if (asked) {
      const then = asked.told.outcome === 'running' ? asked.rows : seen;
      checkLast(' asked', asked.told, then, { cut: false, patient: false, asked: true });
    }
    if (joined) checkLast(' joined', await joined, seen, { cut: isCut });
    if (repeated) checkLast(' repeated', repeated, database.rows(key), { cut: false });
  }
  await session.close();
  return size;
}

/** @param {import('./work.js').Row} row */
const rowText = ({ at, how }) => (how ? `${at} ${how}` : at);
