// `a2a` and `login`, and the demo's app as an MCP client sees it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createTaskClient } from '@abp-bridge/a2a';
import { connectClient } from './support/clients.js';
import { descendants } from './support/processes.js';
import { lineMatching, runGateway, startGateway } from './support/program.js';
import { startScreen } from './support/screen.js';
import { startSite } from './support/site.js';

const DEMO = fileURLToPath(new URL('../../../demo/main.js', import.meta.url));
const TOKEN = 'a-token-of-the-tests';
/** What is to be asked for each time. */
const FRESH = { 'cache-control': 'no-store' };
let site;
before(async () => (site = await startSite()));
after(() => site.close());

test('a2a: each capability is a skill, and a cancel reaches its handler', async () => {
  const args = ['a2a', site.url(), '--temporary', '--http', '127.0.0.1:0', '--token', TOKEN];
  args.push('--allow-host', 'gateway.example');
  const child = startGateway(args);
  const url = /http:\S+/.exec(await lineMatching(child.stderr, /serves A2A at/))[0];
  const client = createTaskClient(url, { headers: { authorization: `Bearer ${TOKEN}` } });
  const { skills } = await client.card();
  assert.ok(skills.some(({ id }) => id === 'number.add'));
  const ask = (skill, params) => ({ parts: [{ data: { skill, params } }] });
  const added = await client.send(ask('number.add', { a: 1, b: 2 }));
  assert.equal(added.status.state, 'completed');
  assert.equal(added.artifacts[0].parts[0].data, 3);
  const failed = await client.send(ask('fail.typed', {}));
  assert.equal(failed.status.state, 'failed');
  assert.match(failed.status.text ?? JSON.stringify(failed.status), /RATE_LIMITED/);
  const rejected = (await client.send(ask('no.such', {}))).status;
  assert.deepEqual([rejected.state, rejected.outcome], ['rejected', 'unstarted']);
  assert.match(JSON.stringify(rejected.message), /There are: .*number\.add/);
  const from = site.lines.length;
  const stop = new AbortController();
  const hanging = client.send(ask('work.hang', {}), { signal: stop.signal });
  await site.logged(/hang started/, from);
  stop.abort();
  assert.equal((await hanging).status.state, 'canceled');
  await site.logged(/hang aborted/, from);
  assert.equal((await fetch(`${url}.well-known/agent-card.json`)).status, 401);
  // The names that the gateway was given are the agent's, too.
  for (const [host, status] of [
    ['gateway.example', 200],
    ['evil.example', 403],
  ]) {
    const headers = { host, authorization: `Bearer ${TOKEN}` };
    const asked = get(`${url}.well-known/agent-card.json`, { headers });
    const [answer] = await once(asked, 'response');
    answer.resume();
    assert.equal(answer.statusCode, status);
  }
  child.kill('SIGTERM');
  assert.equal((await once(child, 'close'))[0], 0);
});

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

test("login shows the page on the app's own profile, and a login that is a session's cookie stays", async (t) => {
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

test('a login whose window is closed, or whose browser is killed, is there for the next calls, until the app logs out', async (t) => {
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

test('--headed calls in a window, and without it there is none', async () => {
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

test("the demo's app by the line that the demo ends with: its tools, a PDF, and a cancel that stops one", async () => {
  const demo = spawn(process.execPath, [DEMO], { env: { ...process.env, PORT: '0' } });
  const line = await lineMatching(demo.stdout, /MCP client/);
  // What it ends with is a line to paste.
  const [, words] = /: claude mcp add demo -- node \S+main\.js (.+)$/.exec(line);
  const mcp = await connectClient('1.x', { args: [...words.split(' '), '--temporary'] });
  const { tools } = await mcp.client.listTools();
  const names = tools.map(({ name }) => name);
  for (const name of ['export_pdf', 'image_blur', 'text_summarise'])
    assert.ok(names.includes(name));
  const { content } = await mcp.call('export_pdf', { markdown: '# One\n\ntext\n\n# Two' });
  const { resource } = content.find(({ type }) => type === 'resource');
  assert.equal(Buffer.from(resource.blob, 'base64').subarray(0, 5).toString(), '%PDF-');
  const stop = new AbortController();
  const markdown = '# A page\n\nwith text\n\n'.repeat(5000);
  const stopped = mcp.call(
    'export_pdf',
    { markdown },
    {
      signal: stop.signal,
      onprogress: () => stop.abort('enough'),
    },
  );
  await assert.rejects(stopped);
  const picture = await mcp.call('image_blur', { size: 32 });
  assert.ok(picture.content.some(({ type }) => type === 'image'));
  await mcp.close();
  demo.kill();
  await once(demo, 'close');
});
