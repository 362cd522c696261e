// The first tools/list is answered by what an app could do the last time, and a call waits for what
// it can do now.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startRaw } from './support/raw-client.js';
import { startSite } from './support/site.js';

let site, home, source;
before(async () => {
  site = await startSite();
  home = mkdtempSync(join(tmpdir(), 'gateway-test-'));
});
after(() => {
  site.close();
  rmSync(home, { recursive: true, force: true, maxRetries: 10 }); // its browser may still write
});
const textOf = ({ content }) => content.find(({ type }) => type === 'text').text;

/** The app, which is there once it is released, and says then what it can do. */
function serve(capabilities) {
  source = capabilities;
  const imports = {
    '@cfworker/json-schema': '/node_modules/@cfworker/json-schema/dist/esm/index.js',
    '@noble/hashes/': '/node_modules/@noble/hashes/',
  };
  const body = `<!doctype html><script type="importmap">${JSON.stringify({ imports })}</script>
  <script type="module">
    import { expose } from '/parts/main/index.js';
    let released;
    do released = await fetch('/released', { cache: 'no-store' });
    while (!released.ok);
    const takes = (...names) => ({ type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])) });
    expose({ app: { id: 'learnt', name: 'Learnt', version: '1' }, capabilities: eval(await released.text()) }, { origins: [] });
  </script>`;
  site.extra.set('/app', { type: 'text/html', body });
  site.extra.delete('/released');
}
const release = () => site.extra.set('/released', { type: 'text/plain', body: `(${source})` });

const start = () => startRaw(['mcp', `${site.origin}/app`], { env: { XDG_DATA_HOME: home } });
const listChanged = ({ method }) => method === 'notifications/tools/list_changed';
async function end(raw) {
  raw.child.stdin.end();
  assert.deepEqual(await raw.closed, [0, null]);
}
const namesOf = ({ result }) =>
  result.tools.map(({ name }) => name).filter((name) => !name.startsWith('call_'));

test('tools are listed before the page answers, a call waits, and one whose tool has changed is refused', async (t) => {
  const old = `{
    same: { inputSchema: takes('a'), handler: ({ a }) => a },
    other: { inputSchema: takes('a'), handler: () => 'called' },
    gone: () => 'called',
  }`;
  serve(old);
  release();
  const first = await start();
  t.after(() => first.child.kill('SIGKILL'));
  assert.deepEqual(namesOf(await first.request('tools/list')), ['same', 'other', 'gone']);
  await end(first);

  serve(old);
  const second = await start();
  t.after(() => second.child.kill('SIGKILL'));
  assert.deepEqual(namesOf(await second.request('tools/list')), ['same', 'other', 'gone']);
  const waiting = second.call('same', { a: 5 });
  // It is cancelled like any other, though nobody has been asked yet.
  second.cancel(second.call('same', { a: 6 }), 'enough');
  release();
  assert.equal(textOf((await second.answerTo(waiting)).result), '5');
  await end(second);
  assert.equal(second.messages.some(listChanged), false);

  serve(`{
    same: { inputSchema: takes('a'), handler: ({ a }) => a },
    other: { inputSchema: takes('b'), handler: () => 'called' },
    added: () => 1,
  }`);
  const third = await start();
  t.after(() => third.child.kill('SIGKILL'));
  assert.deepEqual(namesOf(await third.request('tools/list')), ['same', 'other', 'gone']);
  const calls = ['same', 'other', 'gone'].map((name) => third.call(name, { a: 7 }));
  release();
  const [same, other, gone] = await Promise.all(calls.map((id) => third.answerTo(id)));
  assert.equal(textOf(same.result), '7');
  assert.match(
    textOf(other.result),
    /^CAPABILITY_UNAVAILABLE: The tool has changed since it was listed, and was not called\. .*"b":\{\}/,
  );
  assert.match(textOf(gone.result), /The app no longer has this tool/);
  await third.seen(listChanged);
  assert.deepEqual(namesOf(await third.request('tools/list')), ['same', 'other', 'added']);
  assert.equal(textOf((await third.answerTo(third.call('other', { b: 1 }))).result), 'called');
  await end(third);

  const profiles = join(home, 'abp-bridge-gateway', 'profiles');
  const file = join(profiles, readdirSync(profiles)[0], 'capabilities.json');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.doesNotMatch(readFileSync(file, 'utf8'), /http/);
  // What cannot be read is not known.
  writeFileSync(file, '{"');
  const fourth = await start();
  t.after(() => fourth.child.kill('SIGKILL'));
  assert.deepEqual(namesOf(await fourth.request('tools/list')), ['same', 'other', 'added']);
  await end(fourth);
});
