// Browsers that hang, and pages that block: the gateway ends all the same, leaves no process, and
// says what it does not know.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ended, hang, signalAll } from './support/processes.js';
import { lineMatching, runGateway, startGateway } from './support/program.js';
import { startRaw } from './support/raw-client.js';
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
/** What hangs, and is not killed by the gateway, is killed here. */
const killAfter = (t, pids) => t.after(() => signalAll(pids, 'SIGKILL'));
const textOf = ({ content }) => content.find(({ type }) => type === 'text').text;

const ENDS = {
  'its stdin ends': (raw) => raw.child.stdin.end(),
  'SIGTERM comes': (raw) => raw.child.kill('SIGTERM'),
};
for (const [name, end] of Object.entries(ENDS)) {
  test(`a gateway whose browser hangs in a call kills it when ${name}, and the profile opens again`, async (t) => {
    const raw = await startRaw(['mcp', site.url()], { env: env() });
    const from = site.lines.length;
    const id = raw.call('work_hang');
    await site.logged(/hang started/, from);
    const browser = await hang(raw.child.pid);
    killAfter(t, browser);
    end(raw);
    assert.deepEqual(await raw.closed, [0, null], raw.stderr);
    await ended(browser);
    assert.match(raw.stderr, /The browser has not answered for \d+ s, and is killed/);
    const answer = raw.messages.find((message) => message.id === id);
    if (name === 'SIGTERM comes')
      assert.deepEqual(answer.result._meta['abp-bridge/outcome'], { outcome: 'unknown' });
    const args = ['call', site.url(), 'number.add', '{"a":40,"b":2}'];
    const { stdout, stderr } = await runGateway(args, { env: env() });
    assert.equal(stdout, '42\n', stderr);
  });
}

test('a second signal, whichever, ends all at once', async (t) => {
  const raw = await startRaw(['mcp', site.url(), '--temporary']);
  await raw.answerTo(raw.call('number_add', { a: 1, b: 2 }));
  const browser = await hang(raw.child.pid);
  killAfter(t, browser);
  raw.child.kill('SIGINT');
  raw.child.kill('SIGTERM');
  assert.deepEqual(await raw.closed, [1, null]);
  await ended(browser);
});

test('a browser that hangs while it starts ends with its gateway', async (t) => {
  const child = startGateway(['list', site.url(), '--temporary']);
  let browser = [];
  while (!browser.length) browser = await hang(child.pid);
  killAfter(t, browser);
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'close'), [130, null]);
  await ended(browser);
});

test('a call in a browser that hangs is told as unknown after Ctrl-C', async (t) => {
  const from = site.lines.length;
  const child = startGateway(['call', site.url(), 'work.hang', '--temporary']);
  await site.logged(/hang started/, from);
  const browser = await hang(child.pid);
  killAfter(t, browser);
  const said = lineMatching(child.stderr, /cancelled \(/);
  child.kill('SIGINT');
  assert.match(await said, /whether the app has stopped is not known/);
  assert.deepEqual(await once(child, 'close'), [130, null]);
  await ended(browser);
});

test('where gateways share a browser that hangs, each ends, and another takes the profile', async (t) => {
  const first = await startRaw(['mcp', site.url()], { env: env() });
  await first.answerTo(first.call('number_add', { a: 1, b: 2 }));
  const second = await startRaw(['mcp', site.url()], { env: env() });
  const from = site.lines.length;
  const id = second.call('work_hang');
  await site.logged(/hang started/, from);
  const browser = await hang(first.child.pid);
  killAfter(t, browser);
  first.child.stdin.end();
  const { result } = await second.answerTo(id);
  assert.deepEqual(result._meta['abp-bridge/outcome'], { outcome: 'unknown' });
  assert.deepEqual(await first.closed, [0, null]);
  await ended(browser);
  const again = await second.answerTo(second.call('number_add', { a: 40, b: 2 }));
  assert.equal(textOf(again.result), '42', second.stderr);

  const other = await hang(second.child.pid);
  killAfter(t, other);
  const third = await startRaw(['mcp', site.url()], { env: env() });
  third.call('number_add', { a: 1, b: 2 });
  third.child.stdin.end();
  assert.deepEqual(await third.closed, [0, null]);
  second.child.kill('SIGTERM');
  assert.deepEqual(await second.closed, [0, null]);
  await ended(other);
});

test('a browser that hangs between two calls is replaced after a cancel that it did not answer', async (t) => {
  const raw = await startRaw(['mcp', site.url(), '--temporary']);
  await raw.answerTo(raw.call('number_add', { a: 1, b: 2 }));
  const browser = await hang(raw.child.pid);
  killAfter(t, browser);
  raw.cancel(raw.call('number_add', { a: 1, b: 2 }), 'enough');
  await raw.said(/The browser has not answered for \d+ s, and is killed/);
  await ended(browser);
  let result;
  // Until the gateway has noticed, a call fails.
  do ({ result } = await raw.answerTo(raw.call('number_add', { a: 40, b: 2 })));
  while (result.isError);
  assert.equal(textOf(result), '42');
  raw.child.stdin.end();
  await raw.closed;
});

test('a page that blocks before its app answers is told so, and opened anew for the next call', async () => {
  const html = { type: 'text/html', headers: { 'cache-control': 'no-store' } };
  const blocking = `<!doctype html><script>addEventListener('load', () => { for (;;); });</script>`;
  site.extra.set('/blocks', { ...html, body: blocking });
  const url = `${site.origin}/blocks`;
  const raw = await startRaw(['mcp', url, '--temporary', '--connect-timeout', '5']);
  const add = () => raw.answerTo(raw.call('add', { a: 40, b: 2 }));
  const { error } = await add();
  assert.match(error.message, /has no app that answered \(TIMEOUT: |cannot be opened: Navigation/);
  const body = `<!doctype html><script type="module">
    import { expose } from '/parts/main/index.js';
    const capabilities = { add: ({ a, b }) => a + b };
    expose({ app: { id: 'adds', name: 'Adds', version: '1' }, capabilities }, { origins: [] });
  </script>`;
  site.extra.set('/blocks', { ...html, body });
  let answer;
  for (let tries = 0; tries < 20 && !answer?.result; tries++) answer = await add();
  assert.equal(textOf(answer.result), '42', raw.stderr);
  raw.child.stdin.end();
  await raw.closed;
});
