/** What apps could do the last time, by which a client's first question is answered while the browser starts. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Addresses of one origin that are remembered. */
const MAX_APPS = 32;
/** Characters of what is remembered of one. */
const MAX_LENGTH = 1 << 20;

/** @param {string} profile the folder of the origin's profile */
const fileOf = (profile) => join(profile, 'capabilities.json');

/** An address may hold what is nobody else's to read. @param {URL} url */
const keyOf = (url) => createHash('sha256').update(url.href).digest('hex');

/**
 * @param {string} profile
 * @returns {Record<string, unknown>} by address, the oldest first
 */
function read(profile) {
  try {
    const found = JSON.parse(readFileSync(fileOf(profile), 'utf8'));
    return typeof found === 'object' && found !== null ? found : {};
  } catch {
    return {};
  }
}

/**
 * @param {string} profile
 * @param {URL} url
 * @returns {import('./tools.js').Capability[] | undefined} undefined if nothing is known
 */
export function recall(profile, url) {
  const key = keyOf(url);
  const all = read(profile);
  const found = Object.hasOwn(all, key) ? all[key] : undefined;
  return Array.isArray(found) && found.every((each) => typeof each?.name === 'string')
    ? found
    : undefined;
}

/**
 * Remembers; where that cannot be, the next start waits for the app.
 * @param {string} profile
 * @param {URL} url
 * @param {import('./tools.js').Capability[]} capabilities
 */
export function learn(profile, url, capabilities) {
  if (JSON.stringify(capabilities).length > MAX_LENGTH) return;
  const key = keyOf(url);
  const others = Object.entries(read(profile)).filter(([each]) => each !== key);
  const kept = [...others, [key, capabilities]].slice(-MAX_APPS);
  const path = fileOf(profile);
  try {
    mkdirSync(profile, { recursive: true, mode: 0o700 });
    const text = JSON.stringify(Object.fromEntries(kept));
    writeFileSync(`${path}.${process.pid}`, text, { mode: 0o600 });
    renameSync(`${path}.${process.pid}`, path);
  } catch {
    // See above.
  }
}
