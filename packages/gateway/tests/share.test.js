// Several gateways that want one profile: the first has the browser, and the others use the app
// there.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { socketPathOf, takeProfile } from '../src/profile-socket.js';
import { borrowApp, refuse, shareApp } from '../src/shared-app.js';
import { lineMatching, runGateway, startGateway } from './support/program.js';
import { startRaw } from './support/raw-client.js';
import { startScreen } from './support/screen.js';
import { startSite } from './support/site.js';

let site, home;
before(async () => {
  site = await startSite();
  home = mkdtempSync(join(tmpdir(), 'gateway-test-'));
});
after(() => {
  site.close();
  rmSync(home, { recursive: true, force: true });
});
const env = () => ({ XDG_DATA_HOME: home });
const start = (options) => startRaw(['mcp', site.url()], { env: env(), ...options });
const call = (name, params = {}, ...options) =>
  runGateway(['call', site.url(), name, JSON.stringify(params), ...options], { env: env() });
const textOf = ({ content }) => content.find(({ type }) => type === 'text').text;
async function end(raw) {
  raw.child.stdin.end();
  assert.deepEqual(await raw.closed, [0, null]);
}

test('a call beside a client that runs is made in its browser, with progress, chunks, bytes and a cancel', async (t) => {
  const raw = await start();
  t.after(() => raw.child.kill('SIGKILL'));
  assert.equal(textOf((await raw.answerTo(raw.call('number_add', { a: 1, b: 2 }))).result), '3');
  const added = await call('number.add', { a: 40, b: 2 });
  assert.deepEqual([added.code, added.stdout], [0, '42\n'], added.stderr);
  assert.match(
    added.stderr,
    new RegExp(`uses the browser of the gateway with process id ${raw.child.pid}`),
  );
  assert.match((await call('work.count')).stderr, /^ *1 % {2}step 1$/m);
  assert.equal((await call('work.stream', { returns: 7 })).stdout, 'one \ntwo \nthree\n7\n');
  const out = mkdtempSync(join(home, 'out-'));
  assert.equal((await call('bytes.pdf', { size: 5 }, '--out', out)).code, 0);
  assert.deepEqual(readdirSync(out), ['evil.pdf']);
  const failed = await call('fail.typed');
  assert.match(failed.stderr, /RATE_LIMITED: too many today \(trying again may help\)/);

  const from = site.lines.length;
  const child = startGateway(['call', site.url(), 'work.hang'], { env: env() });
  const answered = lineMatching(child.stderr, /cancelled \(/);
  await site.logged(/hang started/, from);
  child.kill('SIGINT');
  assert.match(await answered, /: cancelled \(the user pressed Ctrl-C\)$/);
  assert.equal(await site.logged(/hang aborted/, from), 'hang aborted: the user pressed Ctrl-C');
  await once(child, 'close');

  const killed = startGateway(['call', site.url(), 'work.hang'], { env: env() });
  const later = site.lines.length;
  await site.logged(/hang started/, later);
  killed.kill('SIGKILL');
  assert.match(await site.logged(/hang aborted/, later), /: the client disconnected$/);
  const other = await runGateway(['list', site.url({ name: 'other' })], { env: env() });
  assert.equal(other.code, 3);
  assert.match(other.stderr, /has this profile open for http:\S+: give that address/);
  await end(raw);
});

test('a second client has the tools and its own questions, and takes the browser over when the first goes', async (t) => {
  const first = await start();
  t.after(() => first.child.kill('SIGKILL'));
  const { result: own } = await first.request('tools/list');
  const second = await start({ capabilities: { elicitation: {} } });
  t.after(() => second.child.kill('SIGKILL'));
  const { result: borrowed } = await second.request('tools/list');
  assert.deepEqual(borrowed.tools, own.tools);
  const asking = second.call('ask_confirm');
  const question = await second.seen(({ method }) => method === 'elicitation/create');
  assert.equal(question.params.message, 'Really?');
  second.write({ id: question.id, result: { action: 'accept', content: { confirmed: true } } });
  assert.match(textOf((await second.answerTo(asking)).result), /"confirmed":true/);

  // A key counts in the other's browser, too, and what became of what was stopped there is told.
  const keyed = { _meta: { 'abp-bridge/idempotencyKey': 'once' } };
  const before = site.lines.length;
  for (let i = 0; i < 2; i++) {
    const { result } = await second.answerTo(second.call('work_slow', { ms: 1 }, keyed));
    assert.deepEqual(result.structuredContent, { took: 1 });
  }
  const stopped = second.call('work_hang');
  await site.logged(/hang started/, before);
  assert.equal(site.lines.slice(before).filter((line) => /slow done/.test(line)).length, 1);
  second.cancel(stopped, 'enough');
  await site.logged(/hang aborted/, before);
  let earlier;
  while (!earlier) {
    const { result } = await second.answerTo(second.call('number_add', { a: 1, b: 2 }));
    earlier = result._meta?.['abp-bridge/earlier'];
  }
  assert.deepEqual(
    earlier.calls.map(({ tool, outcome }) => [tool, outcome]),
    [['work_hang', 'stopped']],
  );

  const from = site.lines.length;
  const id = second.call('work_hang');
  await site.logged(/hang started/, from);
  await end(first);
  const { result } = await second.answerTo(id);
  assert.match(textOf(result), /^CANCELLED: the gateway that has the browser ends/);
  const again = await second.answerTo(second.call('number_add', { a: 40, b: 2 }));
  assert.equal(textOf(again.result), '42', second.stderr);
  // One that is killed leaves a socket behind, which is nobody's.
  second.child.kill('SIGKILL');
  await second.closed;
  const { code, stderr } = await call('number.add', { a: 1, b: 1 });
  assert.equal(code, 0, stderr);
});

test('login takes the profile from a gateway that runs, and gives it back', async (t) => {
  const raw = await start();
  t.after(() => raw.child.kill('SIGKILL'));
  await raw.answerTo(raw.call('number_add', { a: 1, b: 2 }));
  const from = site.lines.length;
  const busy = raw.call('work_hang');
  await site.logged(/hang started/, from);
  const refused = await runGateway(['login', site.url()], { env: env() });
  assert.equal(refused.code, 3);
  assert.match(refused.stderr, /is running a call: try again when it has ended/);
  raw.cancel(busy, 'enough');
  await site.logged(/hang aborted/, from);
  await raw.answerTo(raw.call('number_add', { a: 1, b: 2 }));

  const screen = await startScreen();
  t.after(() => screen.close());
  const shown = site.lines.length;
  const login = startGateway(['login', site.url()], { env: { ...env(), ...screen.env } });
  await site.logged(/loaded/, shown);
  const meanwhile = await raw.answerTo(raw.call('number_add', { a: 1, b: 2 }));
  assert.match(textOf(meanwhile.result), /The login window of process \d+ has this profile/);
  login.kill('SIGINT');
  await once(login, 'close');
  const again = await raw.answerTo(raw.call('number_add', { a: 40, b: 2 }));
  assert.equal(textOf(again.result), '42');
  await end(raw);
});

test("the socket of a profile is this user's alone, has its version in its name, and a path of at most 100 bytes", async (t) => {
  for (const name of ['short', 'long'.repeat(40)]) {
    const profile = join(home, name);
    const path = socketPathOf(profile);
    assert.ok(Buffer.byteLength(`${path}.${process.pid}`) <= 100, path);
    assert.match(path, /[/-]3(-\w+)?$/);
    const { server } = await takeProfile(profile, (channel) => {
      channel.onMessage = (message) => channel.post({ heard: message });
    });
    t.after(() => server.close());
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const { channel } = await takeProfile(profile, () => {});
    const answered = new Promise((resolve) => (channel.onMessage = resolve));
    const text = 'x'.repeat(1 << 20);
    channel.post({ text });
    assert.deepEqual(await answered, { heard: { text } });
    channel.close();
  }
  assert.match(socketPathOf('C:\\profile', 'win32'), /^\\\\\.\\pipe\\abp-bridge-gateway-3-\w+$/);
});

test("what is no gateway's message harms nobody", async (t) => {
  const profile = join(home, 'odd');
  const { server } = await takeProfile(profile, (channel) => refuse(channel, 'no'));
  t.after(() => server.close());
  const { connect } = await import('node:net');
  const socket = connect(socketPathOf(profile));
  t.after(() => socket.destroy());
  const bodies = ['nonsense', '{"jsonrpc":"2.0","id":1,"method":"open","params":{}}'];
  for (const body of bodies) socket.write(`Content-Length: ${body.length}\r\n\r\n${body}`);
  let said = '';
  for await (const chunk of socket) if (/"problem"/.test((said += chunk))) break;
  assert.match(said, /"id":1,"result":{"problem":"no"}/);
});

test('through the gateway that has the browser come all chunks of a turn, and what is learnt after the result', async (t) => {
  const profile = join(home, 'learnt');
  const learn = [];
  const app = {
    url: new URL('http://app.example/'),
    watchers: new Set(),
    knownCapabilities() {},
    describe: async () => ({ app: { name: 'x' }, capabilities: [] }),
    async call(_name, _params, { onChunk }) {
      for (const text of ['one', 'two', 'three']) onChunk(text, 1);
      const error = { code: 'CANCELLED', message: 'enough', retryable: false };
      const settled = new Promise((resolve) => learn.push(resolve));
      return { success: false, error, metadata: { outcome: 'running' }, settled };
    },
  };
  const { server } = await takeProfile(profile, (channel) => shareApp(channel, app));
  t.after(() => server.close());
  const { channel } = await takeProfile(profile, () => {});
  const borrowed = await borrowApp(channel, app.url.href, () => {});
  const chunks = [];
  const call = () => borrowed.call('x', {}, { onChunk: (text) => chunks.push(text) });
  const { metadata, settled } = await call();
  assert.deepEqual([chunks, metadata], [['one', 'two', 'three'], { outcome: 'running' }]);
  learn[0]({ outcome: 'finished', report: { applied: 3 } });
  assert.deepEqual(await settled, { outcome: 'finished', report: { applied: 3 } });
  // Of what runs on when the connection ends, nobody learns more.
  const last = await call();
  borrowed.close();
  assert.deepEqual(await last.settled, { outcome: 'unknown' });
});

test('a gateway that does not answer is left after a cancel, and its call is told as unknown', async (t) => {
  const app = {
    url: new URL('http://app.example/'),
    watchers: new Set(),
    knownCapabilities() {},
    describe: async () => ({ app: { name: 'x' }, capabilities: [] }),
    call: () => new Promise(() => {}),
  };
  const profile = join(home, 'silent');
  const { server } = await takeProfile(profile, (channel) => shareApp(channel, app));
  t.after(() => server.close());
  const { channel } = await takeProfile(profile, () => {});
  const borrowed = await borrowApp(channel, app.url.href, () => {});
  const stop = new AbortController();
  const called = borrowed.call('x', {}, { signal: stop.signal });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  stop.abort('enough');
  t.mock.timers.tick(30_000);
  const { error, metadata } = await called;
  assert.match(error.message, /The gateway that had the browser has ended, or does not answer/);
  assert.deepEqual([error.code, metadata], ['DISCONNECTED', { outcome: 'unknown' }]);
  assert.equal(borrowed.connected, false);
});

test('the gateway that has the browser ends while a question is open: the other goes on', async (t) => {
  const first = await start();
  t.after(() => first.child.kill('SIGKILL'));
  await first.answerTo(first.call('number_add', { a: 1, b: 2 }));
  const second = await start({ capabilities: { elicitation: {} } });
  t.after(() => second.child.kill('SIGKILL'));
  const id = second.call('ask_input');
  const question = await second.seen(({ method }) => method === 'elicitation/create');
  first.child.kill('SIGKILL');
  const { result } = await second.answerTo(id);
  assert.match(textOf(result), /^DISCONNECTED: The gateway that had the browser has ended/);
  assert.deepEqual(result._meta['abp-bridge/outcome'], { outcome: 'unknown' });
  // The question is withdrawn, and the next call has a browser of its own.
  await second.seen(
    ({ method, params }) =>
      method === 'notifications/cancelled' && params.requestId === question.id,
  );
  assert.equal(
    textOf((await second.answerTo(second.call('number_add', { a: 40, b: 2 }))).result),
    '42',
  );
  await end(second);
});
