/** The processes of a program: which they are, whether they run, and how they are made to hang. */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The processes that a process has begun, and those that they have.
 * @param {number} pid
 * @returns {number[]}
 */
export function descendants(pid) {
  const parents = new Map();
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (state !== 'Z') parents.set(Number(name), Number(parent));
    } catch {
      // It has ended meanwhile.
    }
  }
  const found = [pid];
  for (const each of found) {
    for (const [child, parent] of parents) if (parent === each) found.push(child);
  }
  return found.slice(1);
}

const isRunning = (pid) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat[stat.lastIndexOf(')') + 2] !== 'Z';
  } catch {
    return false;
  }
};
/** Resolves when none of them runs any more. */
export async function ended(pids) {
  while (pids.some(isRunning)) await sleep(50);
}

/**
 * Sends a signal to those of them that still run.
 * @param {number[]} pids
 * @param {NodeJS.Signals} signal
 */
export function signalAll(pids, signal) {
  for (const pid of pids.filter(isRunning)) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** @param {number} pid */
const programOf = (pid) => {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return undefined; // It has ended meanwhile.
  }
};
/**
 * What a gateway has begun. A process that still runs the gateway's own program is about to become
 * another one, for which the gateway waits without listening to anything.
 * @param {number} pid of the gateway
 */
const begunBy = (pid) => {
  const own = programOf(pid);
  return descendants(pid).filter((each) => programOf(each) !== own);
};

/**
 * Makes the browser of a gateway hang.
 * @param {number} pid of the gateway
 * @returns {Promise<number[]>} the browser's processes
 */
export async function hang(pid) {
  let found;
  // What it begins meanwhile hangs, too.
  do {
    found = begunBy(pid);
    signalAll(found, 'SIGSTOP');
    await sleep(50);
  } while (begunBy(pid).length > found.length);
  return found;
}
