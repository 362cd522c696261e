/**
 * Lists of tasks, page by page, and their count. The index decides which tasks a list shows. A task
 * is read only if it is shown, or if the index does not know enough of it. The work of a page is
 * bounded, and yields to other work.
 */
import { AbpError, breathe } from 'abp-bridge/driver';
import { ended } from './tasks-core.js';
import { STATES, getField, readState } from './dialects.js';
import { historyOf, invalid, timeOf } from './requests.js';

/** @import { ListFilter, Place } from './store/backends/backend.js' */
/** @import { Dialect, Task } from './dialects.js' */
/** @import { Reply } from './reply.js' */
/** @import { RequestInfo, StoredTask } from './task.js' */

/** Entries of the index that are read, and checked, at once. */
const SCAN = 512;
const GROUP = 16;
/**
 * Entries that are checked for a page and its count. With a slow `authorize`, each counts for
 * several.
 */
const MAX_LOOKED = 250_000;
const LATER = 100;
/** Tasks that are read for a page, and for a list that has no pages. */
const MAX_READ = 200;
const MAX_READ_WHOLE = 1000;
const MAX_PAGE_SIZE = 100;

/**
 * A task in an index.
 * @typedef {object} Listed
 * @property {string} task its id
 * @property {string} contextId
 * @property {number} time when its state changed, in ms since 1970
 * @property {string} [state] undefined before its first record, which may also lack one
 * @property {unknown[]} [by] the user who began it, if any; undefined if not known
 * @property {StoredTask} [whole] the task itself, if it is in memory
 *
 * @typedef {{ dialect: Dialect, params: any, info: RequestInfo, reply: Reply }} Asked
 * @typedef {object} Found whether a list shows a task, and the task if it was read
 * @property {boolean} visible
 * @property {StoredTask} [task]
 */

/** @type {Found} */
const HIDDEN = { visible: false };

export class TaskLists {
  #agent;
  /** True if a request's view depends on more than its tenant. */
  #hasAuthorize;
  /** By filter, and by user where that matters. @type {Map<unknown, Map<string, Job>>} */
  #jobs = new Map();

  /** @param {import('./operations.js').Operations} agent */
  constructor(agent) {
    this.#agent = agent;
    this.#hasAuthorize = agent.parts.options.authorize !== undefined;
  }

  get #entries() {
    return this.#agent.parts.logs.entries;
  }

  /**
   * Answers a request. Equal requests that arrive while one is being answered share one job, which
   * starts afterwards.
   * @param {Asked} asked
   * @returns {Promise<unknown>} the result
   */
  list(asked) {
    const { dialect, params, info, reply } = asked;
    const { user, ...rest } = info;
    const whose = this.#hasAuthorize ? user : undefined;
    const key = JSON.stringify([dialect.name, params, this.#hasAuthorize ? rest : info.tenant]);
    const jobs = this.#jobs.get(whose) ?? new Map();
    this.#jobs.set(whose, jobs);
    /** @param {Promise<unknown>} after */
    const begin = (after) => {
      const job = new Job(dialect.pages ? MAX_READ : MAX_READ_WHOLE, after);
      job.result = after
        .then(() => this.#list(asked, job))
        .finally(() => {
          if (job.next) jobs.set(key, job.next);
          else jobs.delete(key);
          if (jobs.size === 0 && this.#jobs.get(whose) === jobs) this.#jobs.delete(whose);
        });
      return job;
    };
    let job = jobs.get(key);
    if (!job) jobs.set(key, (job = begin(Promise.resolve())));
    // Entries checked already may have changed since.
    else job = job.next ??= begin(job.result.catch(() => {}));
    job.readers.add(reply);
    return job.result;
  }

  /**
   * @param {Asked} asked
   * @param {Job} job
   * @returns {Promise<unknown>}
   */
  async #list({ dialect, params, info }, job) {
    const { contextId, status, after, pageSize, from, artifacts, of } = filterOf(params);
    const state = status ? STATES[status] : undefined;
    const filter = { tenant: info.tenant ?? '', context: contextId, state, since: after };
    const limit = dialect.pages ? pageSize : Infinity;
    const withArtifacts = artifacts || !dialect.pages;
    const before = from?.before ?? 0;
    const known =
      from?.total ?? (this.#hasAuthorize ? undefined : await this.#entries.count(filter));
    /** @type {Task[]} */
    const tasks = [];
    let room = this.#agent.parts.limits.maxAnswer;
    /**
     * Where the page ends, whether it has ended, and whether more follows.
     * @type {Place | undefined}
     */
    let place = from?.place;
    let full = false;
    let more = false;
    let count = before;
    const isOfList = (/** @type {StoredTask} */ task) =>
      (!state || task.state === state) &&
      (after === undefined || Date.parse(timeOf(task)) >= after);
    const fits = (/** @type {StoredTask} */ task) =>
      tasks.length < limit &&
      (room -= withArtifacts ? task.size : task.size - task.artifactsSize) >= 0;
    // While the tasks are not counted, all of them are checked.
    const size = known === undefined ? SCAN : Math.min(limit + 1, SCAN);
    scan: for await (const group of this.#groups(filter, place, size)) {
      if (full && known !== undefined) {
        more = true;
        break;
      }
      await breathe();
      job.requireReader();
      const wanted = full ? 0 : limit - tasks.length;
      const found = await this.#look(group, { info, isOfList, job, wanted });
      for (const [i, entry] of group.entries()) {
        if (!found[i]) break scan;
        let { visible, task } = found[i];
        // Some of the tasks before it were not shown after all.
        if (visible && !task && !full && tasks.length < limit && job.read())
          ({ visible, task } = await this.#read(entry, info, isOfList, true));
        if (visible) count++;
        if (visible && (full || !task || !fits(task))) full = more = true;
        if (full && known !== undefined && more) break scan;
        if (full) continue;
        place = entry;
        if (!task) continue;
        const shown = historyOf(task, params);
        tasks.push(withArtifacts ? shown : { ...shown, artifacts: [] });
      }
    }
    if ((more || job.spent) && !dialect.pages)
      throw tooLarge(
        'The tasks are too many or too long for one answer: ask for those of a context',
      );
    if (tasks.length === 0 && room < 0)
      throw tooLarge('A task of the list is too long for one answer');
    const shown = before + tasks.length;
    const total = Math.max(shown, known ?? count);
    const exact = known !== undefined || !job.spent;
    const next = more || job.spent ? place : undefined;
    const nextPageToken = next ? printToken(next, exact ? { total } : { before: shown }, of) : '';
    return dialect.list(tasks, { nextPageToken, pageSize, totalSize: total });
  }

  /**
   * @param {ListFilter} filter
   * @param {Place | undefined} after
   * @param {number} size
   * @returns {AsyncGenerator<Listed[]>}
   */
  async *#groups(filter, after, size) {
    do {
      const page = await this.#entries.page(filter, after, size);
      for (let at = 0; at < page.tasks.length; at += GROUP) yield page.tasks.slice(at, at + GROUP);
      after = page.next;
    } while (after);
  }

  /**
   * Checks which of some tasks a list shows. Reads `wanted` of them, and those that the index does
   * not know enough about.
   * @param {Listed[]} group
   * @param {{ info: RequestInfo, isOfList: (task: StoredTask) => boolean, job: Job,
   *   wanted: number }} how
   * @returns {Promise<Found[]>} fewer if the limit of checks is reached
   */
  async #look(group, { info, isOfList, job, wanted }) {
    const judged = group.map((entry) => this.#judge(entry, info, job));
    const verdicts = await whole(judged);
    /** @type {(Found | Promise<Found>)[]} */
    const found = [];
    for (const [i, entry] of group.entries()) {
      const verdict = verdicts[i];
      if (!job.look(1)) break;
      if (verdict === false) found.push(HIDDEN);
      else if (entry.whole) found.push({ visible: isOfList(entry.whole), task: entry.whole });
      else if (verdict && wanted-- <= 0) found.push({ visible: true });
      else if (job.read()) found.push(this.#read(entry, info, isOfList, verdict));
      else if (verdict) found.push({ visible: true });
      else break;
    }
    return whole(found);
  }

  /**
   * True if a request may see a task.
   * @param {Listed} entry
   * @param {RequestInfo} info
   * @param {Job} job
   * @returns {boolean | undefined | Promise<boolean | undefined>} undefined if the index does not
   *   know enough of it
   */
  #judge(entry, info, job) {
    if (entry.whole) return this.#ask(entry.whole, info, job);
    if (!entry.state) return undefined;
    if (!this.#hasAuthorize) return true;
    const summary = summaryOf(entry, info.tenant);
    const refuse = () => !(summary.lacks = true);
    const verdict = this.#ask(summary.task, info, job, refuse);
    if (typeof verdict === 'boolean') return summary.lacks ? undefined : verdict;
    return verdict.then((visible) => (summary.lacks ? undefined : visible));
  }

  /**
   * @param {StoredTask} task
   * @param {RequestInfo} info
   * @param {Job} job
   * @param {() => boolean} [refuse]
   */
  #ask(task, info, job, refuse) {
    const verdict = this.#agent.allows(task, 'list', info, refuse);
    if (typeof verdict !== 'boolean') job.look(LATER);
    return verdict;
  }

  /**
   * @param {Listed} entry
   * @param {RequestInfo} info
   * @param {(task: StoredTask) => boolean} isOfList
   * @param {boolean | undefined} verdict the decision from the index
   * @returns {Promise<Found>}
   */
  async #read(entry, info, isOfList, verdict) {
    const task = await this.#entries.read(entry);
    if (!task || !isOfList(task)) return HIDDEN;
    // The index may be behind.
    const known = verdict && task.state === entry.state && Date.parse(timeOf(task)) === entry.time;
    return known || (await this.#agent.allows(task, 'list', info))
      ? { visible: true, task }
      : HIDDEN;
  }
}

/** @param {string} why */
const tooLarge = (why) => new AbpError('TOO_LARGE', why);

/**
 * Waits only if there is something to wait for.
 * @template T
 * @param {(T | Promise<T>)[]} values
 * @returns {Promise<T[]> | T[]}
 */
const whole = (values) =>
  values.some((value) => value instanceof Promise)
    ? Promise.all(values.map(async (value) => value))
    : /** @type {T[]} */ (values);

/**
 * An answer in progress, the requests that wait for it, and the work that it may still cost.
 */
class Job {
  /** @type {Set<Reply>} */
  readers = new Set();
  /** The job after it. @type {Job | undefined} */
  next;
  /** True if the work exceeded its limit. */
  spent = false;
  #looks = MAX_LOOKED;
  #reads;

  /**
   * @param {number} reads
   * @param {Promise<unknown>} result
   */
  constructor(reads, result) {
    this.#reads = reads;
    this.result = result;
  }

  /**
   * @param {number} times
   * @returns {boolean} whether the limit allows that
   */
  look(times) {
    this.spent ||= (this.#looks -= times) < 0;
    return !this.spent;
  }

  read() {
    this.spent ||= --this.#reads < 0;
    return !this.spent;
  }

  /** Throws if no request waits for the answer any more. */
  requireReader() {
    for (const { left } of this.readers) if (!left) return;
    throw new AbpError('DISCONNECTED', 'The client has left');
  }
}

/** Placeholders in a summary, for members it does not know. @type {Record<PropertyKey, unknown>} */
const UNKNOWN = { history: [], artifacts: [], size: 0, artifactsSize: 0 };

/**
 * A task from the index, as `authorize` sees it. Records whether `authorize` has read an unknown
 * member: then the task itself must be read.
 * @param {Listed} listed
 * @param {string | undefined} tenant
 */
function summaryOf({ task: id, contextId, state, time, by }, tenant) {
  const lack = (/** @type {unknown} */ value) => {
    summary.lacks = true;
    return /** @type {any} */ (value);
  };
  const status = () => ({
    state,
    timestamp: new Date(time).toISOString(),
    get message() {
      return lack(undefined);
    },
  });
  /** @type {Record<PropertyKey, () => unknown>} */
  const known = {
    id: () => id,
    contextId: () => contextId,
    tenant: () => tenant,
    state: () => state,
    status,
    terminal: () => ended(readState(state)),
    ...(by && { user: () => by[0] }),
  };
  const task = /** @type {StoredTask} */ (
    new Proxy(/** @type {any} */ ({}), {
      get: (_, name) => (Object.hasOwn(known, name) ? known[name]() : lack(UNKNOWN[name])),
      ownKeys: () => lack([]),
      has: () => lack(false),
      getOwnPropertyDescriptor: () => lack(undefined),
      set: () => false,
    })
  );
  const summary = { task, lacks: false };
  return summary;
}

// --- What is asked for ---------------------------------------------------------------------------

/** @param {unknown} params */
function filterOf(params) {
  const pageSize = getField(params, 'pageSize') ?? MAX_PAGE_SIZE / 2;
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MAX_PAGE_SIZE)
    throw invalid('pageSize', `must be between 1 and ${MAX_PAGE_SIZE}`);
  const wanted = getField(params, 'status');
  const status = wanted === undefined ? 0 : readState(wanted);
  if (wanted && !status && wanted !== 'TASK_STATE_UNSPECIFIED')
    throw invalid('status', `is not a task state: ${JSON.stringify(wanted)}`);
  const since = textIn(params, 'statusTimestampAfter');
  const after = since ? Date.parse(since) : undefined;
  if (Number.isNaN(after))
    throw invalid('statusTimestampAfter', 'must be a valid ISO 8601 date string');
  const token = textIn(params, 'pageToken');
  const contextId = textIn(params, 'contextId');
  const of = JSON.stringify([contextId, status, after]);
  const from = token ? readToken(token, of) : undefined;
  if (token && !from) throw invalid('pageToken', 'is not that of a list with these filters');
  const artifacts = getField(params, 'includeArtifacts') === true;
  return { contextId, status, after, pageSize, from, artifacts, of };
}

/**
 * A string that may be absent or empty.
 * @param {unknown} params
 * @param {string} name
 * @returns {string | undefined}
 */
function textIn(params, name) {
  const value = getField(params, name) || undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw invalid(name, 'must be a string');
}

/**
 * @param {Place} place
 * @param {{ total?: number, before?: number }} count
 * @param {string} of the filter of the list
 */
const printToken = ({ time, task }, { total, before }, of) =>
  btoa(encodeURIComponent(JSON.stringify([time, task, total ?? null, before ?? null, of])));

/**
 * Where a page begins, and the known part of the count: the number of all tasks, or only of those
 * before the page.
 * @param {string} token
 * @param {string} wanted the filter of the list
 * @returns {{ place: Place, total?: number, before?: number } | undefined}
 */
function readToken(token, wanted) {
  try {
    const [time, task, total, before, of] = JSON.parse(decodeURIComponent(atob(token)));
    // A token of the previous version lacks the filter.
    if (of !== undefined && of !== wanted) return undefined;
    const count = (/** @type {unknown} */ n) =>
      Number.isInteger(n) && /** @type {number} */ (n) >= 0 && /** @type {number} */ (n) < 2 ** 31
        ? /** @type {number} */ (n)
        : undefined;
    if (typeof time === 'number' && typeof task === 'string')
      return { place: { time, task }, total: count(total), before: count(before) };
  } catch {
    // The token is rejected.
  }
  return undefined;
}
