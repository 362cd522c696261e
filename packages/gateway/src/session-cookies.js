/** Cookies that a browser forgets when it ends: with many apps they are the login, so they are kept beside the profile. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** @param {string} profile folder of it */
const fileOf = (profile) => join(profile, 'session-cookies.json');

/**
 * @param {import('puppeteer-core').CDPSession} session with the browser
 * @param {string} profile
 */
export async function saveSessionCookies(session, profile) {
  const { cookies } = await session.send('Storage.getCookies');
  const kept = cookies
    .filter((cookie) => cookie.session)
    .map(({ domain, ...cookie }) => {
      const { name, value, path, secure, httpOnly, sameSite, priority, partitionKey } = cookie;
      const rest = { name, value, path, secure, httpOnly, sameSite, priority, partitionKey };
      // Without a dot it is of this host alone, which an address says and a domain does not.
      return domain.startsWith('.')
        ? { ...rest, domain }
        : { ...rest, url: `http${secure ? 's' : ''}://${domain}${path}` };
    });
  const path = fileOf(profile);
  writeFileSync(`${path}.new`, JSON.stringify(kept), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/**
 * @param {import('puppeteer-core').CDPSession} session with the browser
 * @param {string} profile
 */
export async function restoreSessionCookies(session, profile) {
  let kept;
  try {
    kept = JSON.parse(readFileSync(fileOf(profile), 'utf8'));
  } catch {
    return; // There are none yet.
  }
  for (const cookie of kept) {
    // One that the browser does not take costs no other.
    await session.send('Storage.setCookies', { cookies: [cookie] }).catch(() => {});
  }
}
