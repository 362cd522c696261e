// `list` and `call`, over a real Chromium: results, failures, progress, cancels, and where the page
// may go.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, unlinkSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { expose } from 'abp-bridge';
import { webSocketTransport } from 'abp-bridge/transports';
import { WebSocketServer } from 'ws';
import { lineMatching, runGateway, startGateway, withTimeFor } from './support/program.js';
import { startSite } from './support/site.js';

let site, folder;
before(async () => {
  site = await startSite();
  folder = mkdtempSync(join(tmpdir(), 'gateway-test-'));
});
after(() => {
  site.close();
  rmSync(folder, { recursive: true, force: true });
});
const call = (capability, params, ...options) =>
  runGateway(['call', site.url(), capability, JSON.stringify(params), '--temporary', ...options]);

test('list tells capabilities, schemas, what is not available, and why', async () => {
  const { stdout, code } = await runGateway(['list', site.url(), '--temporary']);
  assert.equal(code, 0);
  assert.match(stdout, /^Test app 1\.0\n/);
  assert.match(stdout, /text\.echo\n {4}Says what it is told\n {4}takes: \{"type":"object"/);
  assert.match(stdout, /fail\.none {2}\(not available\)\n {4}needs: a document is open: open one/);
});

test('call prints the data, and reports progress line by line where there is no terminal', async () => {
  const { stdout, stderr, code } = await call('work.count', {});
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { counted: 100 });
  assert.match(stderr, /^ *1 % {2}step 1$/m);
});

test('what a handler streams is printed as it comes, and then what it returns', async () => {
  const { stdout, code } = await call('work.stream', { returns: 7 });
  assert.deepEqual([code, stdout], [0, 'one \ntwo \nthree\n7\n']);
  assert.equal((await call('work.stream', {})).stdout, 'one \ntwo \nthree\n');
  const { data, chunks } = JSON.parse((await call('work.stream', { returns: 7 }, '--json')).stdout);
  assert.deepEqual([data, chunks], [7, ['one ', 'two ', 'three']]);
});

test('a failure is its code and message, and exit code 1', async () => {
  const { stdout, stderr, code } = await call('fail.typed', {});
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /RATE_LIMITED: too many today \(trying again may help\)/);
});

test('bytes go where --out says, under no name of the app but within that folder', async () => {
  const { code, stderr } = await call('bytes.pdf', { size: 5 }, '--out', folder);
  assert.equal(code, 0, stderr);
  assert.deepEqual(readdirSync(folder), ['evil.pdf']);
  assert.equal(readFileSync(join(folder, 'evil.pdf'), 'utf8'), '%%%%%');
});

test('--json is the whole response, bytes in base64', async () => {
  const { stdout } = await call('bytes.png', {}, '--json');
  const { success, data } = JSON.parse(stdout);
  assert.deepEqual([success, data.content, data.mimeType], [true, 'iVBORw==', 'image/png']);
});

test('--timeout cancels the call, and exits with 124', async () => {
  const from = site.lines.length;
  const { code, stderr } = await call('work.hang', {}, '--timeout', '0.5');
  assert.equal(code, 124, stderr);
  await site.logged(/hang aborted/, from);
});

test('Ctrl-C cancels the call, and says so', async () => {
  const from = site.lines.length;
  const child = startGateway(['call', site.url(), 'work.hang', '--temporary']);
  const answered = lineMatching(child.stderr, /cancelled \(/);
  await site.logged(/hang started/, from);
  child.kill('SIGINT');
  assert.match(await answered, /: cancelled \(the user pressed Ctrl-C\)$/);
  assert.equal(await site.logged(/hang aborted/, from), 'hang aborted: the user pressed Ctrl-C');
  assert.equal((await once(child, 'close'))[0], 130);
});

test('a second Ctrl-C leaves, whatever the app does', async () => {
  const from = site.lines.length;
  const child = startGateway(['call', site.url(), 'work.deaf', '--temporary']);
  const cancelling = lineMatching(child.stderr, /cancelling/);
  await site.logged(/deaf started/, from);
  child.kill('SIGINT');
  await cancelling;
  child.kill('SIGINT');
  assert.equal((await once(child, 'close'))[0], 130);
});

test('params come from a file and from stdin, and what is no JSON is wrong usage', async () => {
  const args = ['call', site.url(), 'text.echo'];
  const piped = await runGateway([...args, '-', '--temporary'], { input: '{"text":"piped"}' });
  assert.deepEqual(JSON.parse(piped.stdout), { text: 'piped' });
  const wrong = await runGateway([...args, '{text}']);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /^abp-bridge-gateway: The params are not JSON: .+\n$/);
});

test('a dialog of the page is dismissed, never accepted', async () => {
  const { stdout, stderr } = await call('ask.dialog', {});
  assert.deepEqual(JSON.parse(stdout), { confirmed: false });
  assert.match(stderr, /the page's confirm was dismissed: Delete everything\?/);
});

test('a page that redirects to an origin that was not named is not called', async () => {
  site.extra.set('/moved', { to: site.url().replace(site.origin, site.elsewhere) });
  const args = ['call', `${site.origin}/moved`, 'number.add', '{"a":1,"b":2}', '--temporary'];
  const { code, stderr } = await runGateway(args);
  assert.equal(code, 3);
  assert.match(stderr, new RegExp(`The page navigated to ${site.elsewhere}, which is not allowed`));
  const named = await runGateway([...args, '--origin', site.elsewhere]);
  assert.equal(named.stdout.trim(), '3');
});

test('a page without an app, and an address of nothing, are a sentence and exit code 3', async () => {
  site.extra.set('/empty', { type: 'text/html', body: '<!doctype html><title>empty</title>' });
  const list = (url, ...more) => runGateway(['list', url, '--temporary', ...more]);
  const answered = /^abp-bridge-gateway: .*has no app that answered \(TIMEOUT: .*\n$/;
  const said = await withTimeFor(answered, async (seconds) => {
    const empty = await list(`${site.origin}/empty`, '--connect-timeout', seconds);
    assert.equal(empty.code, 3);
    return empty.stderr;
  });
  assert.match(said, answered);
  const nothing = await list('http://localhost:1/');
  assert.equal(nothing.code, 3);
  assert.match(
    nothing.stderr,
    /^abp-bridge-gateway: http:\/\/localhost:1\/ cannot be opened: .*\n$/,
  );
});

test('an app has a profile of its own that lasts, and one that a browser has is told plainly', async () => {
  const env = { XDG_DATA_HOME: folder };
  const first = await runGateway(['list', site.url()], { env });
  assert.equal(first.code, 0, first.stderr);
  const profiles = join(folder, 'abp-bridge-gateway', 'profiles');
  const lock = join(profiles, readdirSync(profiles)[0], 'SingletonLock');
  symlinkSync(`${hostname()}-${process.pid}`, lock);
  const { code, stderr } = await runGateway(['list', site.url()], { env });
  assert.equal(code, 3);
  assert.match(
    stderr,
    /The profile .*http_localhost_\d+ is in use by the browser with process id \d+/,
  );
  unlinkSync(lock);
  const again = await runGateway(['list', site.url()], { env });
  assert.equal(again.code, 0, again.stderr);
});

test('a ws: address needs no browser', async () => {
  const server = new WebSocketServer({ port: 0 });
  await once(server, 'listening');
  const app = expose(
    {
      app: { id: 'ws', name: 'Socket app', version: '1' },
      capabilities: { double: ({ n }) => 2 * n },
    },
    { origins: [] },
  );
  server.on('connection', (socket) => app.accept(webSocketTransport(socket)));
  const url = `ws://127.0.0.1:${server.address().port}/`;
  const { stdout, stderr } = await runGateway(['call', url, 'double', '{"n":21}'], {
    env: { CHROME_PATH: '/nowhere' },
  });
  assert.equal(stdout.trim(), '42', stderr);
  app.close();
  server.close();
});

test('a page that has WebMCP and nothing else: its tools are called, and no outcome of a cancel is claimed', async () => {
  const body = `<script type="module">
    const log = (line) => fetch('/log', { method: 'POST', body: line });
    const inputSchema = { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } };
    document.modelContext.registerTool({
      name: 'add', description: 'Adds', inputSchema, execute: ({ a, b }) => ({ sum: a + b }),
    });
    document.modelContext.registerTool({
      name: 'hang', description: 'Hangs', inputSchema,
      execute: () => (log('tool started'), new Promise(() => {})),
    });
  </script>`;
  site.extra.set('/tools', { type: 'text/html', body });
  const url = `${site.origin}/tools`;
  const { stdout, stderr, code } = await runGateway([
    'call',
    url,
    'add',
    '{"a":1,"b":2}',
    '--temporary',
  ]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /"sum": 3/);
  const child = startGateway(['call', url, 'hang', '--temporary']);
  const said = lineMatching(child.stderr, /cancelled \(/);
  await site.logged(/tool started/);
  child.kill('SIGINT');
  assert.match(await said, /whether the app has stopped is not known/);
  assert.equal((await once(child, 'close'))[0], 130);
});
