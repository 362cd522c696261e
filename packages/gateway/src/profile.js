/**
 * The browser profile of an app: one for each origin, so that a login lasts and is separate. It has
 * two files of the gateway: cookies that a browser forgets when it ends (with many apps they are
 * the login), and the apps' capabilities of the last run, by which a client's first request is
 * answered while the browser starts.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readlinkSync, renameSync, writeFileSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from './errors.js';

/** Ms that a closing browser may hold its profile. */
const LOCK_PATIENCE = 5000;
const POLL = 100;
/** Addresses of one origin whose capabilities are remembered. */
const MAX_APPS = 32;
/** Characters remembered of one. */
const MAX_LENGTH = 1 << 20;

const COOKIES = 'session-cookies.json';
const CAPABILITIES = 'capabilities.json';

/** The folder for data of this user's programs. */
function dataFolder() {
  const { env, platform } = process;
  if (platform === 'win32') return env.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local');
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support');
  return env.XDG_DATA_HOME || join(homedir(), '.local', 'share');
}

/**
 * The folder of the app's profile.
 * @param {string} origin
 */
export function profileOf(origin) {
  const name = origin.replace(/:\/\//, '_').replace(/[^a-zA-Z0-9.-]/g, '_');
  return join(dataFolder(), 'abp-bridge-gateway', 'profiles', name);
}

/**
 * The process that holds a profile, NaN if it is another user's. Chromium writes it into a link,
 * except on Windows.
 * @param {string} profile
 */
function holderOf(profile) {
  try {
    const [, host, pid] = /^(.*)-(\d+)$/.exec(readlinkSync(join(profile, 'SingletonLock'))) ?? [];
    if (host !== hostname()) return undefined; // Chromium itself reports that
    process.kill(Number(pid), 0);
    return Number(pid);
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM' ? NaN : undefined;
  }
}

/**
 * Reports plainly which process has the profile.
 * @param {string} profile
 * @param {number} [pid]
 */
export function profileInUse(profile, pid) {
  const who = pid ? ` by the browser with process id ${pid}` : '';
  return new UserError(
    `The profile ${profile} is in use${who}, which no gateway of this version has opened. Close it, name another folder with --profile, take a throwaway one with --temporary, or attach to the running browser with --cdp`,
  );
}

/**
 * Makes the folder, and waits until a closing browser has released it; throws if it does not.
 * @param {string} profile
 */
export async function claimProfile(profile) {
  makePrivate(profile);
  for (let waited = 0; ; waited += POLL) {
    const pid = holderOf(profile);
    if (pid === undefined) return;
    if (waited >= LOCK_PATIENCE) throw profileInUse(profile, pid);
    await sleep(POLL);
  }
}

/** @param {string} folder */
export const makePrivate = (folder) => mkdirSync(folder, { recursive: true, mode: 0o700 });

// --- The gateway's files -------------------------------------------------------------------------

/**
 * @param {string} profile
 * @param {string} name
 * @returns {any} undefined if there is no readable one
 */
function read(profile, name) {
  try {
    return JSON.parse(readFileSync(join(profile, name), 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * @param {string} profile
 * @param {string} name
 * @param {object} value
 */
function write(profile, name, value) {
  const path = join(profile, name);
  const draft = `${path}.${process.pid}`;
  makePrivate(profile);
  writeFileSync(draft, JSON.stringify(value), { mode: 0o600 });
  renameSync(draft, path);
}

/**
 * @param {import('puppeteer-core').Protocol.Network.Cookie[]} cookies
 * @param {string} profile
 */
export function saveSessionCookies(cookies, profile) {
  const kept = cookies
    .filter((cookie) => cookie.session)
    .map(({ domain, ...cookie }) => {
      const { name, value, path, secure, httpOnly, sameSite, priority, partitionKey } = cookie;
      const rest = { name, value, path, secure, httpOnly, sameSite, priority, partitionKey };
      // A domain without a dot means this host alone, which a URL can express and a domain cannot.
      return domain.startsWith('.')
        ? { ...rest, domain }
        : { ...rest, url: `http${secure ? 's' : ''}://${domain}${path}` };
    });
  write(profile, COOKIES, kept);
}

/**
 * @param {import('puppeteer-core').CDPSession} session with the browser
 * @param {string} profile
 */
export async function restoreSessionCookies(session, profile) {
  for (const cookie of [read(profile, COOKIES) ?? []].flat()) {
    // A cookie that the browser rejects does not affect the others: the file may have been edited.
    await session.send('Storage.setCookies', { cookies: [cookie] }).catch(() => {});
  }
}

/**
 * An address may contain secrets.
 * @param {URL} url
 */
const keyOf = (url) => createHash('sha256').update(url.href).digest('hex');

/**
 * The capabilities of apps, by address, the oldest first.
 * @param {string} profile
 * @returns {Record<string, any>}
 */
const learntIn = (profile) => Object(read(profile, CAPABILITIES));

/**
 * @param {string} profile
 * @param {URL} url
 * @returns {import('./tools.js').Capability[] | undefined} undefined if nothing is known
 */
export function recall(profile, url) {
  const found = learntIn(profile)[keyOf(url)];
  const isList = Array.isArray(found) && found.every((each) => typeof each?.name === 'string');
  return isList ? found : undefined;
}

/**
 * Remembers an app's capabilities.
 * @param {string} profile
 * @param {URL} url
 * @param {import('./tools.js').Capability[]} capabilities
 */
export function learn(profile, url, capabilities) {
  if (JSON.stringify(capabilities).length > MAX_LENGTH) return;
  const others = Object.entries(learntIn(profile)).filter(([each]) => each !== keyOf(url));
  const kept = [...others, [keyOf(url), capabilities]].slice(-MAX_APPS);
  try {
    write(profile, CAPABILITIES, Object.fromEntries(kept));
  } catch {
    // The next start waits for the app.
  }
}
