/** The browser's profile of an app: one for each origin, so that a login lasts and is nobody else's. */
import { mkdirSync, readlinkSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from './errors.js';

/** How long a browser that is being closed may hold its profile, in ms. */
const LOCK_PATIENCE = 5000;
const POLL = 100;

/** Where this user's programs keep their data. */
function dataFolder() {
  const { env, platform } = process;
  if (platform === 'win32') return env.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local');
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support');
  return env.XDG_DATA_HOME || join(homedir(), '.local', 'share');
}

/**
 * @param {string} origin
 * @returns {string} the folder of the app's profile
 */
export function profileOf(origin) {
  const name = origin.replace(/:\/\//, '_').replace(/[^a-zA-Z0-9.-]/g, '_');
  return join(dataFolder(), 'abp-bridge-gateway', 'profiles', name);
}

/**
 * The process that holds a profile. Chromium writes it into a link; on Windows it does not say.
 * @param {string} folder
 * @returns {number | undefined}
 */
function holderOf(folder) {
  try {
    const [, host, pid] = /^(.*)-(\d+)$/.exec(readlinkSync(join(folder, 'SingletonLock'))) ?? [];
    if (host !== hostname()) return undefined; // Chromium itself has a word for that
    process.kill(Number(pid), 0);
    return Number(pid);
  } catch (error) {
    const alive = /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM';
    return alive ? NaN : undefined;
  }
}

/**
 * Says plainly who has the profile.
 * @param {string} folder
 * @param {number} [pid]
 */
export function profileInUse(folder, pid) {
  const who = pid ? ` by the browser with process id ${pid}` : '';
  return new UserError(
    `The profile ${folder} is in use${who}, which no gateway of this version has opened. Close it, name another folder with --profile, take a throwaway one with --temporary, or attach to the running browser with --cdp`,
  );
}

/**
 * Makes the folder, and waits until a browser that is on its way out has let it go.
 * @param {string} folder
 * @throws {UserError} when it is in use and stays so
 */
export async function claimProfile(folder) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (let waited = 0; ; waited += POLL) {
    const pid = holderOf(folder);
    if (pid === undefined) return;
    if (waited >= LOCK_PATIENCE) throw profileInUse(folder, pid);
    await sleep(POLL);
  }
}
