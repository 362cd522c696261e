/**
 * Makes calls of handlers whose effects are known, stops them at random moments, and compares what
 * is told with what stands.
 */
import { random } from '../differential/scripts.js';
import { contradiction } from './judge.js';
import { isStopped, makeCall, planOf } from './calls.js';
import { handlersOf, turn, turns } from './work.js';

/** @typedef {import('./judge.js').Told} Told */
/** @typedef {import('./work.js').Row} Row */

/**
 * What may happen in the middle of a session. `ends`: the app is gone for good; `returns`: the
 * agent connects again by itself, and repeats its calls; `forgets`: the app that answers then knows
 * nothing of them, but for their keys if it `keeps` these.
 * @type {Record<string, { ends?: boolean, returns?: boolean, forgets?: boolean, keeps?: boolean }>}
 */
export const TROUBLES = {
  'the line is cut': {},
  'the app closes': { ends: true },
  'the agent closes': {},
  'the line comes back': { returns: true },
  'the app restarts': { returns: true, forgets: true },
  'the app restarts, and has kept its keys': { returns: true, forgets: true, keeps: true },
  'the app was away for long': { returns: true, forgets: true },
};

/**
 * @typedef {object} Settings
 * @property {number} grace ms that the app waits for a handler that was told to stop
 * @property {number} room handlers that may run at once
 * @property {string} name of the session
 * @property {string} path of the database, for handlers elsewhere
 * @property {string} [trouble] what is to happen
 * @property {boolean} [returns] whether the agent connects again by itself
 * @property {import('./calls.js').Caller} caller
 * @property {Promise<unknown>} whenReleased resolves when theirs that are stuck may go on
 * @property {(thread: number) => void} threadEnded is to be told of a thread that has ended, and
 *   its handlers with it
 */

/**
 * @typedef {object} Session Calls to one app, by one of the ways.
 * @property {import('./calls.js').Call} [call]
 * @property {() => Promise<unknown>} [pace] a turn of whoever calls
 * @property {(plan: import('./calls.js').Plan) => ReturnType<import('./calls.js').Call>} [make]
 *   makes a call elsewhere, where its stop and what is told of it are noted; in place of `call`
 * @property {() => unknown} [back] begins another session after trouble
 * @property {(callId: string, settled: boolean) => Promise<Told>} [ask] what is told of a call to
 *   who asks for it later, in another session if this one was cut; `settled`: when its handler has
 *   ended
 * @property {() => Promise<unknown>} [ready] resolves when there is a session, or will be none
 * @property {import('./calls.js').Call} [again] makes a call that may have been made before, by its
 *   `idempotencyKey`
 * @property {boolean} [dies] whether trouble ends the handlers, too
 * @property {(below: (below: number) => number) => unknown} trouble lets it happen
 * @property {() => unknown} close
 */

/**
 * @typedef {object} Connection
 * @property {(handlers: ReturnType<typeof handlersOf>, settings: Settings) => Promise<Session>}
 *   open
 * @property {readonly string[]} [lacks] what it cannot do: `streams` from handlers, `chunks` for
 *   callers, `input`, `questions`, `inner calls`, `checks` of params, `cancel` by the id of a call,
 *   `keys`, `asking later`
 * @property {readonly string[]} [troubles] those of {@link TROUBLES} that may happen (the line is
 *   cut)
 * @property {number} [costs] how much longer a session takes than elsewhere: there are so many
 *   times fewer
 * @property {boolean} [slow] whether calls take longer to arrive than handlers to run, which are in
 *   this thread
 * @property {boolean} [foreign] whether nothing tells what became of a cancelled call
 * @property {boolean} [reports] whether the handler's own words come with the outcome
 * @property {boolean} [untimed] whether calls have no timeouts
 * @property {boolean} [waits] whether handlers that were told to stop are waited for in any case
 * @property {number} [callerGrace] ms after which a caller gives up on the answer to its cancel,
 *   where that is not for ever
 */

/**
 * Something that was told of a call.
 * @typedef {{ grace: number, trouble: string, word: string, wrong?: string }} Record
 */

const MAX_SESSION = 12;
/** Sessions have seeds that are so far from one another. */
const STRIDE = 7919;
/** What is asked for again. */
const UNSETTLED = ['running', 'unknown'];

let runs = 0;

/**
 * @param {Connection} connection
 * @param {import('./database.js').Database} database
 * @param {{ stops: number, seed: number, graces?: [number, number] }} options `graces`, in ms: one
 *   that is over before stuck handlers go on, and one that is not
 * @returns {Promise<Record[]>}
 */
export async function makeStops(connection, database, { stops, seed, graces = [20, 5000] }) {
  /** @type {Record[]} */
  const all = [];
  // One database may have the rows of many.
  const mine = `${++runs}/${seed}`;
  for (let session = 0, done = 0; done < stops; session++) {
    const its = seed + STRIDE * session;
    const { size, records } = await oneSession(
      connection,
      database,
      `${mine}.${session}`,
      random(its),
      graces,
    );
    done += size;
    for (const record of records) {
      if (record.wrong) record.wrong += ` (again: SEED=${its} STOPS=1)`;
      all.push(record);
    }
  }
  return all;
}

/**
 * @param {Connection} connection
 * @param {import('./database.js').Database} database
 * @param {string} name
 * @param {(below: number) => number} below
 * @param {[number, number]} graces
 */
async function oneSession(connection, database, name, below, graces) {
  const { lacks = [], troubles = ['the line is cut'] } = connection;
  const trouble = below(2) ? undefined : troubles[below(troubles.length)];
  const { ends, returns, forgets, keeps } = TROUBLES[trouble] ?? {};
  const patient = below(2) === 0 || connection.waits === true;
  const grace = graces[patient ? 1 : 0];
  const size = 1 + below(MAX_SESSION);
  const room = below(2) ? MAX_SESSION : 2;
  const { place, begun, release, whenReleased } = placeIn(database);
  // The id of a call stops nothing while its client is away, and will make it again.
  const lacking = returns ? [...lacks, 'cancel'] : lacks;
  const plans = Array.from({ length: size }, (_, i) => ({
    ...planOf(`${name}.${i}`, below, lacking),
    isKeyed: below(2) === 0,
    isJoined: below(2) === 0,
    isPatient: below(2) === 0,
  }));
  const keys = plans.map(({ key }) => key);
  const { path, write } = database;
  const threadEnded = (/** @type {number} */ thread) => {
    for (const key of keys) {
      const rows = database.rows(key);
      const isThere = rows.some((row) => row.at === 'begin' && row.thread === thread);
      if (isThere && !rows.some(({ at }) => at === 'end')) write({ key, at: 'end', how: 'killed' });
    }
  };
  /** @type {Settings} */
  const settings = {
    name,
    path,
    whenReleased,
    threadEnded,
    grace,
    room,
    trouble,
    returns,
    caller: { write },
  };
  if (patient) release();
  const session = await connection.open(handlersOf(place, lacks), settings);

  const { call, pace } = session;
  const caller = { write, pace, begun: connection.slow ? begun : undefined };
  settings.caller.pace = pace;
  const make = session.make ?? ((plan) => makeCall(call, caller, plan));
  let isTroubled = false;
  const happening =
    trouble &&
    turns(below(12), pace).then(() => {
      isTroubled = true;
      write({ key: name, at: 'cut' });
      return session.trouble(below);
    });
  const repeats = session.again && !lacks.includes('keys');
  const asks = session.ask && !lacks.includes('asking later');
  const repeat = ({ handler, key, params }, callId = `${key} repeated`) =>
    session.again(handler, params, { callId, idempotencyKey: key });
  const making = plans.map(async (plan) => {
    // Neither streams nor what is streamed to a handler can be repeated.
    const repeatable = repeats && !plan.inChunks && plan.handler !== 'reads';
    const keyed = repeatable && plan.isKeyed;
    const told = make({ ...plan, keyed, retried: returns && repeatable });
    const joined = keyed && plan.isJoined ? repeat(plan, `${plan.key} joined`) : undefined;
    const { settled, ...first } = await told;
    // Some read at once what is known later; who closes is told nothing more.
    const reads = plan.isKeyed && !ends && trouble !== 'the agent closes';
    const later = reads ? settled?.() : undefined;
    return { ...plan, keyed, told: first, later, joined };
  });
  // The rest may wait for places that handlers hold until they are released.
  const stopped = await Promise.all(
    making.filter((_, i) => isStopped(plans[i], connection.untimed)),
  );
  await happening;
  if (isTroubled && !ends && !returns) await session.back?.();
  /**
   * @param {Awaited<typeof making[0]>[]} calls
   * @param {boolean} settled whether who asks waits until the handler has ended
   */
  const ask = async (calls, settled) => {
    for (const call of calls) {
      const { key, told, isPatient, later } = call;
      if (!asks || isPatient !== settled || !UNSETTLED.includes(told.outcome)) continue;
      const rows = database.rows(key).slice();
      call.asked = { rows, settled, told: await ((settled && later) || session.ask(key, settled)) };
    }
  };
  await ask(stopped, false);
  release();
  const made = await Promise.all(making);
  for (const call of made) call.joined = await call.joined;
  if (!isTroubled || !session.dies) await database.quiet(keys);
  await ask(made, true);
  const rows = new Map(keys.map((key) => [key, database.rows(key).slice()]));
  // Who repeats a call by hand must know whether its app has forgotten it.
  await session.ready?.();
  if (!ends && (!forgets || keeps))
    for (const call of made) if (call.keyed) call.repeated = await repeat(call);
  const [wasCut] = database.rows(name);
  const gone = Boolean(isTroubled && (ends || forgets));
  const records = made.flatMap(({ key, handler, params, told, asked, joined, repeated }) => {
    const seen = rows.get(key);
    // A page may be reloaded after it noted what it was told, and before it passed that on. The
    // last row says that nothing was told.
    const { order } = seen.findLast(({ at }) => at === 'told');
    /** @type {Omit<import('./judge.js').Circumstances, 'cut'>} */
    const always = {
      ...connection,
      patient: patient && told.waited < grace,
      joined: joined !== undefined,
      frees: isTroubled && (!forgets || keeps),
    };
    /** @type {(when: string, what: Told, rows: Row[], more: object) => Record} */
    const check = (when, what, rows, more) => {
      const why = contradiction(rows, what, { ...always, ...more });
      const word = `${when} ${what.success ? 'success' : (what.outcome ?? 'untold')}`.trim();
      const call = [handler, params.inner, params.manner, params.temper, key].filter(Boolean);
      const where = `${trouble ?? 'no trouble'}, grace ${grace}`;
      const text = rows.map(({ at, how }) => (how ? `${at} ${how}` : at)).join(', ');
      const wrong = why && `${call.join(' ')}, ${where}: ${word}: ${why}: ${text}`;
      return { grace, trouble, word, ...(wrong && { wrong }) };
    };
    /** What is told last is compared with all that stands. @type {typeof check} */
    const checkLast = (when, what, rows, more) => {
      const others = rows.filter(({ at }) => at !== 'told');
      return check(when, what, [...others, { key, at: 'told', how: what.outcome }], more);
    };
    const lost = wasCut?.order < order || told.waited >= connection.callerGrace;
    const then = asked?.told.outcome === 'running' ? asked.rows : seen;
    return [
      check('', told, seen, { cut: lost }),
      ...(asked
        ? [
            checkLast('asked', asked.told, then, {
              cut: gone,
              patient: false,
              asked: true,
              atOnce: !asked.settled,
            }),
          ]
        : []),
      ...(joined ? [checkLast('joined', joined, seen, { cut: isTroubled })] : []),
      ...(repeated ? [checkLast('repeated', repeated, database.rows(key), { cut: gone })] : []),
    ];
  });
  await session.close();
  return { size, records };
}

/**
 * Where handlers run that are in this thread.
 * @param {import('./database.js').Database} database
 */
function placeIn(database) {
  let tellReleased = () => {};
  const whenReleased = new Promise((resolve) => (tellReleased = () => resolve(undefined)));
  /** @type {Map<string, () => void>} */
  const waiting = new Map();
  return {
    place: {
      write(/** @type {Row} */ row) {
        database.write(row);
        if (row.at === 'begin') waiting.get(row.key)?.();
      },
      writeElsewhere: database.writeElsewhere,
      released: () => whenReleased.then(turn),
    },
    /**
     * Resolves when the handler of a call begins.
     * @param {string} key
     */
    begun: (key) => new Promise((resolve) => waiting.set(key, () => resolve(undefined))),
    /** Lets those that are stuck go on. */
    release: tellReleased,
    whenReleased,
  };
}
