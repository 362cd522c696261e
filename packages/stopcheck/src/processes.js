/**
 * The work of a program, seen by the processes that it starts (Linux). Its sockets are not looked
 * at: pools keep them, and open them ahead, when no work goes on.
 */
import { readFileSync, readdirSync } from 'node:fs';

/** Ms between two looks. */
const PERIOD = 50;

/**
 * @template T
 * @param {() => T} look
 * @param {T} gone
 */
function unlessGone(look, gone) {
  try {
    return look();
  } catch {
    return gone;
  }
}

/**
 * The descendants of a process, each with the command lines that lead to it.
 * @param {number} pid
 * @param {string} [line]
 * @returns {[pid: number, line: string][]}
 */
function descendants(pid, line = '') {
  const read = (/** @type {string} */ path) => unlessGone(() => readFileSync(path, 'utf8'), '');
  const threads = unlessGone(() => readdirSync(`/proc/${pid}/task`), []);
  const children = threads.flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  );
  return children.flatMap((child) => {
    const own = `${line} ${read(`/proc/${child}/cmdline`)}`;
    return [[child, own], ...descendants(child, own)];
  });
}

export class Processes {
  /** What is there without a call. @type {Set<number>} */
  #idle = new Set();
  /** What works for whom. @type {Map<number, import('./witness.js').Work>} */
  #working = new Map();
  /** @type {number | undefined} */
  #pid;
  #lastLook = performance.now();
  #timer;

  /** @param {() => import('./witness.js').Work[]} works of the calls that are running */
  constructor(works) {
    this.#timer = setInterval(() => this.#look(works()), PERIOD);
    this.#timer.unref();
  }

  /**
   * The program has started, or is idle again: what it has now belongs to it.
   * @param {number | undefined} pid
   */
  settle(pid) {
    this.#pid = pid;
    this.#idle = new Set(pid ? descendants(pid).map(([child]) => child) : []);
  }

  /** @param {import('./witness.js').Work[]} works */
  #look(works) {
    const [then, at] = [this.#lastLook, performance.now()];
    this.#lastLook = at;
    const now = new Map(this.#pid ? descendants(this.#pid) : []);
    const before = new Set(this.#working.values());
    for (const pid of this.#working.keys()) if (!now.has(pid)) this.#working.delete(pid);
    for (const [pid, line] of now) {
      if (this.#idle.has(pid) || this.#working.has(pid)) continue;
      // Of several calls, only the command lines can tell whose it is: when it has its own.
      const its = works.find(({ key }) => line.includes(key));
      const work = its ?? (works.length === 1 ? works[0] : undefined);
      if (work) this.#working.set(pid, work);
      else if (!works.length) this.#idle.add(pid);
    }
    const after = new Set(this.#working.values());
    // They have ended at some time since the last look: what is not sure is nobody's fault.
    for (const work of before) if (!after.has(work)) work.add('end', then);
    for (const work of after)
      if (before.has(work)) work.add('beat', at, at - then);
      else work.add('begin', at);
  }

  close() {
    clearInterval(this.#timer);
  }
}
