// `login`: the profile of an app, in a window that a person sees.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { descendants } from './support/processes.js';
import { runGateway, startGateway } from './support/program.js';
import { startScreen } from './support/screen.js';
import { startSite } from './support/site.js';

/** What is to be asked for each time. */
const FRESH = { 'cache-control': 'no-store' };

let site;

/** A page with an app that tells its cookies, and a script. */
function page(script) {
  const body = `<!doctype html><script type="module">
    import { expose } from '/parts/main/index.js';
    const capabilities = { cookie: () => document.cookie };
    ${script}
    expose({ app: { id: 'cookies', name: 'Cookies', version: '1' }, capabilities }, { origins: [] });
  </script>`;
  site.extra.set('/cookies', { type: 'text/html', headers: FRESH, body });
  return `${site.origin}/cookies`;
}

/** The command lines of the processes that a process has begun. */
function commandOf(parent) {
  const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim();
  return children
    .split(' ')
    .map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '))
    .join('\n');
}

/**
 * Closes the windows of a login, as a person does.
 * @param {string} profile of a browser with a port for that
 */
async function closeWindows(profile) {
  const [port] = (await readOnce(join(profile, 'DevToolsActivePort'), /\n/)).split('\n');
  const ask = (path) => fetch(`http://127.0.0.1:${port}/json${path}`);
  for (const { type, id } of await (await ask('')).json())
    if (type === 'page') await ask(`/close/${id}`);
}

/**
 * A file that another process writes, once it matches.
 * @param {string} path
 * @param {RegExp} pattern
 */
async function readOnce(path, pattern) {
  for (;;) {
    const text = await readFile(path, 'utf8').catch(() => '');
    if (pattern.test(text)) return text;
    await sleep(50);
  }
}

before(async () => (site = await startSite()));

after(() => site.close());

test('login shows the page on the profile of the app, and keeps session cookies', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const screen = await startScreen();
  t.after(() => screen.close());
  const from = site.lines.length;
  const env = { ...screen.env, XDG_DATA_HOME: home };
  const url = page(
    `document.cookie = 'forgotten=' + (document.cookie ? 'no' : 'yes');
    fetch('/log', { method: 'POST', body: 'shown' });`,
  );
  const child = startGateway(['login', url], { env });
  await site.logged(/shown/, from);
  assert.doesNotMatch(commandOf(child.pid), /--enable-automation/);
  // Else another start could not read what this one encrypts.
  assert.match(commandOf(child.pid), /--password-store=basic/);
  child.kill('SIGINT');
  assert.equal((await once(child, 'close'))[0], 0);
  const profiles = join(home, 'abp-bridge-gateway', 'profiles');
  const saved = join(profiles, readdirSync(profiles)[0], 'session-cookies.json');
  assert.equal(statSync(saved).mode & 0o777, 0o600);
  // What the second saves, too, is there in the third.
  for (let at = 0; at < 2; at++) {
    const { stdout, stderr } = await runGateway(['call', url, 'cookie'], { env });
    assert.equal(stdout, '"forgotten=no"\n', stderr);
  }
});

test('a login is kept when its window is closed or its browser killed, until the app logs out', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'gateway-test-'));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const screen = await startScreen();
  t.after(() => screen.close());
  const env = { ...screen.env, XDG_DATA_HOME: home };
  const cookies = [
    'sid=1; HttpOnly; SameSite=Strict',
    '__Host-id=2; Secure; Path=/; HttpOnly',
    'part=3; Secure; HttpOnly; SameSite=None; Partitioned',
  ];
  const html = {
    type: 'text/html',
    headers: { 'set-cookie': cookies, ...FRESH },
  };
  const body = `<script>fetch('/log', { method: 'POST', body: 'signed in' });</script>`;
  site.extra.set('/signin', { ...html, body });
  const gone = cookies.slice(0, 1).map((each) => `${each}; Max-Age=0`);
  site.extra.set('/logout', { ...html, headers: { 'set-cookie': gone, ...FRESH }, body: '' });
  const url = page(`capabilities.logout = () => fetch('/logout').then(() => 'out');`);
  const profile = join(
    home,
    'abp-bridge-gateway',
    'profiles',
    site.origin.replace('://', '_').replace(':', '_'),
  );
  /** @returns the cookies with which the page was asked for, before the call */
  const call = async (name) => {
    const { code, stderr } = await runGateway(['call', url, name], { env });
    assert.equal(code, 0, stderr);
    return (site.extra.get('/cookies').cookie ?? '').split('; ').sort().join(' ');
  };
  for (const end of [
    () => closeWindows(profile),
    (child) => process.kill(descendants(child.pid)[0], 'SIGKILL'),
  ]) {
    const from = site.lines.length;
    const port = '--browser-arg=--remote-debugging-port=0';
    const child = startGateway(['login', `${site.origin}/signin`, port], { env });
    await site.logged(/signed in/, from);
    await readOnce(join(profile, 'session-cookies.json'), /"sid"/);
    const closed = once(child, 'close');
    await end(child);
    assert.deepEqual(await closed, [0, null]);
    assert.equal(await call('logout'), '__Host-id=2 part=3 sid=1');
  }
  assert.equal(await call('cookie'), '__Host-id=2 part=3');
});

test('--headed calls in a window, and without it no window opens', async () => {
  const screen = await startScreen();
  const browserOf = async (options, env) => {
    const args = ['call', site.url(), 'page.where', '--temporary', ...options];
    const { stdout, stderr } = await runGateway(args, { env });
    assert.ok(stdout, stderr);
    return JSON.parse(stdout).browser;
  };
  assert.doesNotMatch(await browserOf(['--headed'], screen.env), /Headless/);
  assert.match(await browserOf([], screen.env), /Headless/);
  const { code, stderr } = await runGateway(
    ['call', site.url(), 'page.where', '--temporary', '--headed'],
    { env: { DISPLAY: '', WAYLAND_DISPLAY: '' } },
  );
  assert.equal(code, 3);
  assert.match(stderr, /does not start: .*Try: abp-bridge-gateway doctor\n$/);
  await screen.close();
});
