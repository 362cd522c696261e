/** Makes calls of handlers whose effects are known, stops them at random moments, and compares what is told with what stands. */
import { random } from '../differential/scripts.js';
import { contradiction } from './judge.js';
import { NAMES, handlersOf, isStuck, turn } from './work.js';

/** @typedef {import('./judge.js').Told} Told */

/**
 * @typedef {object} Settings
 * @property {number} grace ms that the app waits for a handler that was told to stop
 * @property {number} room handlers that may run at once
 * @property {string} path of the database, for handlers elsewhere
 * @property {Promise<unknown>} whenReleased resolves when theirs that are stuck may go on
 */

/**
 * @typedef {object} Session Calls to one app, by one of the ways.
 * @property {(name: string, params: { key: string, seed: number }, options: { signal: AbortSignal, timeout?: number }) => Promise<Told & {
 *   later?: Promise<Told | undefined> }>} call what the way tells of a call; `later` is what it tells when the handler has ended after all
 * @property {boolean} [dies] whether a cut ends the handlers, too
 * @property {() => unknown} cut cuts the connection, or ends the app, without a word
 * @property {() => unknown} close
 */

/**
 * @typedef {object} Way
 * @property {(handlers: ReturnType<typeof handlersOf>, settings: Settings) => Promise<Session>} open
 * @property {number} [costs] how much longer a session takes than elsewhere: there are so many times fewer
 * @property {boolean} [foreign] whether nothing tells what became of a cancelled call
 * @property {boolean} [reports] whether the handler's own words come with the outcome
 * @property {boolean} [waits] whether handlers that were told to stop are waited for in any case
 * @property {boolean} [queues] false if there is no limit of handlers that run at once
 */

/** The grace period of apps that wait as long as it takes, and of those that do not, in ms. */
const PATIENT = 600_000;
const SHORT = 20;
const MAX_SESSION = 12;

/** @param {number} below a number of microtasks to let pass */
async function microtasks(below) {
  for (let i = 0; i < below; i++) await undefined;
}
/** @param {number} count of turns to let pass */
async function turns(count) {
  for (let i = 0; i < count; i++) await turn();
}

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
  const place = {
    write: database.write,
    writeElsewhere: database.writeElsewhere,
    released: () => (free ? turn() : new Promise((resolve) => void held.push(resolve))),
  };
  const { path } = database;
  const settings = { path, whenReleased, grace: patient ? PATIENT : SHORT, room };
  if (free) release();
  const session = await way.open(handlersOf(place), settings);

  let isCut = false;
  const cutting = cut
    ? turns(below(12)).then(() => {
        isCut = true;
        return session.cut();
      })
    : undefined;
  const calls = Array.from({ length: size }, (_, i) => {
    const handler = NAMES[below(NAMES.length)];
    return oneCall(session, database, handler, `${name}.${i}`, below);
  });
  const all = await Promise.all(calls);
  await cutting;
  release();
  if (!isCut || !session.dies) await database.quiet(all.map(({ key }) => key));
  for (const { key, handler, told } of all) {
    const circumstances = { cut: isCut, patient, ...way };
    /** @param {Told} what @param {string} when */
    const check = (what, when, rows = database.rows(key)) => {
      const why = contradiction(rows, what, circumstances);
      if (why) wrong.push(`${handler} ${key}${when}: ${why}: ${rows.map(rowText).join(', ')}`);
    };
    check(told, '');
    const word = told.success ? 'success' : (told.outcome ?? 'untold');
    tally[word] = (tally[word] ?? 0) + 1;
    const later = await told.later;
    if (!later) continue;
    // It is the last word, so it is compared with all that stands.
    const rows = database.rows(key).filter(({ at }) => at !== 'told');
    check(later, ' later', [...rows, { key, at: 'told', how: later.outcome }]);
    tally[`later ${later.outcome ?? 'success'}`] =
      (tally[`later ${later.outcome ?? 'success'}`] ?? 0) + 1;
  }
  await session.close();
  return size;
}

/** @param {import('./work.js').Row} row */
const rowText = ({ at, how }) => (how ? `${at} ${how}` : at);

/**
 * @param {Session} session
 * @param {import('./database.js').Database} database
 * @param {string} handler
 * @param {string} key
 * @param {(below: number) => number} below
 */
async function oneCall(session, database, handler, key, below) {
  const controller = new AbortController();
  const { signal } = controller;
  const stop = () => controller.abort(new DOMException('the test stops it', 'AbortError'));
  const options = { signal };
  const seed = below(2 ** 31);
  const [moment, count] = [below(6), below(10)];
  // What is stuck ends only if it is told to stop, or is never stuck.
  if (moment === 0) stop();
  if (moment === 1 && !isStuck(handler)) options.timeout = 1 + count;
  const calling = session.call(handler, { key, seed }, options);
  if (moment === 2) stop();
  if (moment === 3) void microtasks(count).then(stop);
  if (moment >= 4) void turns(2 * count).then(stop);
  const told = await calling;
  database.write({ key, at: 'told', how: told.success ? 'success' : told.outcome });
  return { key, handler, told };
}
