// What a day with the gateway brings: pages that hang or are not the app, clients that wait,
// servers on other hosts.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { KINDS, connectClient } from './support/clients.js';
import { lineMatching, runGateway, startGateway } from './support/program.js';
import { startRaw } from './support/raw-client.js';
import { startSite } from './support/site.js';
import { startSocketApp } from './support/socket-app.js';

const TOKEN = 'a-token-of-the-tests';
const textOf = ({ content }) => content.find(({ type }) => type === 'text').text;
let site;
before(async () => (site = await startSite()));
after(() => site.close());
/** A page of its own, with an app. */
function page(path, capabilities) {
  const body = `<!doctype html><script type="module">
    import { expose } from '/parts/main/index.js';
    const log = (body) => fetch('/log', { method: 'POST', body });
    expose({ app: { id: 'day', name: 'Day', version: '1' }, capabilities: ${capabilities} }, { origins: [] });
  </script>`;
  site.extra.set(path, { type: 'text/html', body });
  return `${site.origin}${path}`;
}
/** What is left of a test that has failed. */
const left = new Set();
after(() => {
  for (const child of left) child.kill('SIGTERM');
});
/** A gateway of this test's own. */
async function start(url) {
  const raw = await startRaw(['mcp', url, '--temporary']);
  left.add(raw.child);
  return raw;
}
/** @param {Awaited<ReturnType<typeof startRaw>>} raw */
async function end(raw) {
  left.delete(raw.child);
  raw.child.stdin.end();
  assert.deepEqual(await raw.closed, [0, null]);
}

for (const kind of KINDS) {
  test(`a tool with outputSchema that outlasts patience gives client ${kind} a handle, and then its data`, async (t) => {
    let finish;
    let begin;
    const started = new Promise((resolve) => (begin = resolve));
    const app = await startSocketApp({
      work: {
        outputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
        handler: () => {
          begin();
          return new Promise((resolve) => (finish = () => resolve({ n: 42 })));
        },
      },
    });
    t.after(() => app.close());
    const mcp = await connectClient(kind, { args: ['mcp', app.url, '--patience', '0.05'] });
    t.after(() => mcp.close());
    await mcp.client.listTools();
    const begun = await mcp.call('work');
    const { handle } = begun._meta['abp-bridge/call'];
    assert.match(textOf(begun), /^work still runs/);
    // The handle may come before the app has heard of the call.
    await started;
    finish();
    let result;
    do result = await mcp.call('call_wait', { handle });
    while (result._meta?.['abp-bridge/call']);
    assert.deepEqual(result.structuredContent, { n: 42 });
  });
}

test('a page that hangs is replaced after a cancel that it did not answer', async () => {
  const url = page(
    '/hangs',
    `{
    hang: () => { log('hanging').then(() => { for (;;); }); return new Promise(() => {}); },
    add: ({ a, b }) => a + b,
  }`,
  );
  const raw = await start(url);
  const from = site.lines.length;
  const id = raw.call('hang');
  await site.logged(/hanging/, from);
  raw.cancel(id, 'enough');
  const { result } = await raw.answerTo(raw.call('add', { a: 1, b: 1 }));
  // It was called in the page that hangs, or in the new one.
  if (result.isError)
    assert.match(textOf(result), /^DISCONNECTED: .*\nWhether its work was done is not known/s);
  const again = await raw.answerTo(raw.call('add', { a: 40, b: 2 }));
  assert.equal(textOf(again.result), '42');
  assert.match(raw.stderr, /the page does not answer and is closed/);
  await end(raw);
});

test('an address that answers with an error, or leads to a login, is named at once', async () => {
  site.extra.set('/account', { to: '/signin' });
  const form = '<!doctype html><form><input type="password"></form>';
  site.extra.set('/signin', { type: 'text/html', body: form });
  for (const [path, pattern] of [
    ['/no-such-page', /answered with status 404\n$/],
    ['/account', /leads to a login at \/signin: run: abp-bridge-gateway login http:\S+\n$/],
  ]) {
    const { code, stderr } = await runGateway(['list', `${site.origin}${path}`, '--temporary']);
    assert.equal(code, 3);
    assert.match(stderr, pattern);
  }
});

for (const [signal, words] of [
  ['SIGINT', 'the user pressed Ctrl-C'],
  ['SIGTERM', 'the program was ended by SIGTERM'],
]) {
  test(`${signal} is obeyed while the page still opens, and is named as what it is`, async () => {
    const silent = createServer();
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const asked = once(silent, 'connection');
    const address = `http://127.0.0.1:${silent.address().port}/`;
    const child = startGateway(['call', address, 'x', '--temporary']);
    const said = lineMatching(child.stderr, /before the app was called/);
    const [socket] = await asked;
    child.kill(signal);
    assert.match(await said, new RegExp(`cancelled before the app was called: ${words}$`));
    assert.equal((await once(child, 'close'))[0], 130);
    socket.destroy();
    silent.close();
  });
}

test('a call that returns nothing prints null', async () => {
  const app = await startSocketApp({ nothing: () => {} });
  const { stdout, code } = await runGateway(['call', app.url, 'nothing']);
  assert.deepEqual([code, stdout], [0, 'null\n']);
  app.close();
});

test('over HTTP, hosts and pages that were named may ask, whatever the case of Bearer; others may not', async () => {
  const app = await startSocketApp({ add: ({ a, b }) => a + b });
  const child = startGateway([
    'mcp',
    app.url,
    '--http',
    '0.0.0.0:0',
    '--token',
    TOKEN,
    '--allow-host',
    'gateway.example',
    '--allow-origin',
    'https://page.example',
  ]);
  const names = lineMatching(child.stderr, /This server answers to/);
  const line = await lineMatching(child.stderr, /serves MCP at/);
  const port = Number(/:(\d+)\/mcp/.exec(line)[1]);
  const ask = (method, headers) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
      const sent = request({ port, host: '127.0.0.1', path: '/mcp', method, headers }, (answer) => {
        text(answer).then((body) => resolve(Object.assign(answer, { body })), reject);
      });
      sent.on('error', reject);
      sent.end(method === 'POST' ? body : undefined);
    });
  const host = `gateway.example:${port}`;
  const authorization = `bEARER ${TOKEN}`;
  for (const allowed of [host, 'gateway.example']) {
    const { statusCode } = await ask('POST', { host: allowed, authorization });
    assert.ok(![401, 403].includes(statusCode), `${statusCode}`);
  }
  const refused = await ask('POST', { host: 'other.example', authorization });
  assert.equal(refused.statusCode, 403);
  // It says which names it answers to, and how to allow another, at its start and when it refuses
  // one.
  const said = `This server answers to gateway.example, gateway.example:${port}, 0.0.0.0:${port}; --allow-host NAME allows another name`;
  assert.equal((await names).replace(/^abp-bridge-gateway: /, ''), said);
  assert.equal(
    JSON.parse(refused.body).error.message,
    `Host other.example is not allowed. ${said}`,
  );
  assert.equal((await ask('POST', { host, authorization: 'bearer other' })).statusCode, 401);
  const preflight = {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization, content-type',
  };
  const origin = 'https://page.example';
  const allowed = await ask('OPTIONS', { host, origin, ...preflight });
  assert.deepEqual(
    [allowed.statusCode, allowed.headers['access-control-allow-origin']],
    [204, origin],
  );
  assert.match(allowed.headers['access-control-allow-headers'], /authorization/);
  const read = await ask('POST', { host, origin, authorization });
  assert.equal(read.headers['access-control-allow-origin'], origin);
  const evil = await ask('OPTIONS', { host, origin: 'https://evil.example', ...preflight });
  assert.deepEqual(
    [evil.statusCode, evil.headers['access-control-allow-origin']],
    [403, undefined],
  );
  assert.match(
    evil.body,
    /Origin https:\/\/evil\.example is not allowed: --allow-origin allows one/,
  );
  child.kill('SIGTERM');
  await once(child, 'close');
  app.close();
});
