// Several gateways that want one profile: the first has the browser, and the others use the app there.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { socketPathOf, takeProfile } from '../src/profile-socket.js';
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
    assert.match(path, /[/-]2(-\w+)?$/);
    const heard = [];
    const { server } = await takeProfile(profile, (channel) => {
      channel.onMessage = (message) => {
        heard.push(message);
        channel.post({ heard: message });
      };
    });
    t.after(() => server.close());
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const { channel } = await takeProfile(profile, () => {});
    const answered = new Promise((resolve) => (channel.onMessage = resolve));
    const bytes = new Uint8Array(1 << 20).fill(7);
    channel.post({ bytes });
    assert.deepEqual(await answered, { heard: { bytes } });
    channel.close();
  }
  assert.match(socketPathOf('C:\\profile', 'win32'), /^\\\\\.\\pipe\\abp-bridge-gateway-2-\w+$/);
});

test("what is no gateway's message ends its connection, and nothing else", async (t) => {
  const profile = join(home, 'odd');
  let closed;
  const gone = new Promise((resolve) => (closed = resolve));
  const { server } = await takeProfile(profile, (channel) =>
    Object.assign(channel, { onMessage() {}, onClose: closed }),
  );
  t.after(() => server.close());
  const { connect } = await import('node:net');
  const socket = connect(socketPathOf(profile));
  socket.on('error', () => {});
  socket.write(Buffer.from([0, 0, 0, 3, 1, 2, 3]));
  await gone;
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
