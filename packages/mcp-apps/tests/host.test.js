// A host whose view is played by the test: what it takes of one, and when.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPeer, portChannel } from '@abp-bridge/rpc';
import { createHost } from '../src/index.js';
import { getEventListeners } from 'node:events';
import { hostAndView } from './support/hosts-and-views.js';

/** The word by which a view of ours keeps its state with its host. */
const STATE = 'abp-bridge/state';

const HOST = { name: 'H', version: '1' };
/** So many requests wait at most. */
const MOST = 64;

/** A host, and its view, which has said nothing yet. Both are closed with the test. */
function open(t, options = {}) {
  const { port1, port2 } = new MessageChannel();
  const hosting = createHost(portChannel(port1), { host: HOST, ...options });
  const view = createPeer(portChannel(port2), { dialect: 'mcp' });
  const heard = [];
  for (const name of ['tool-input', 'tool-result', 'host-context-changed']) {
    view.onNotification(`ui/notifications/${name}`, (params) => heard.push([name, params]));
  }
  t.after(async () => {
    view.close();
    await hosting.then((host) => host.close({ timeout: 1 })).catch(() => {});
  });
  return {
    hosting,
    view,
    heard,
    greet: (more) =>
      view.request('ui/initialize', { appInfo: { name: 'V', version: '2' }, ...more }),
    begin: () => view.notify('ui/notifications/initialized', {}),
  };
}
const isRefused = (promise) => assert.rejects(promise, { code: -32600 });

test('a view is heard when its session has begun, and not before', async (t) => {
  const logged = [];
  const opened = [];
  const options = { onLog: ({ data }) => logged.push(data), onOpenLink: (url) => opened.push(url) };
  const { view, greet, begin, hosting } = open(t, options);
  // Nothing begins a session but its handshake.
  begin();
  view.notify('notifications/message', { data: 'too early' });
  await isRefused(view.request('ui/open-link', { url: 'https://a.example/' }));
  await greet();
  view.notify('notifications/message', { data: 'early, too' });
  // What is asked after the handshake waits for its end.
  const waiting = view.request('ui/open-link', { url: 'https://b.example/' });
  await new Promise(setImmediate);
  assert.deepEqual(opened, []);
  begin();
  await waiting;
  view.notify('notifications/message', { data: 'now' });
  await view.request('ui/open-link', { url: 'https://c.example/' });
  assert.deepEqual(logged, ['now']);
  assert.deepEqual(opened.map(String), ['https://b.example/', 'https://c.example/']);
  await hosting;
});

test('no more than so many requests wait for a view to begin', async (t) => {
  const { view, greet, begin } = open(t, { onOpenLink() {} });
  await greet();
  const link = () => view.request('ui/open-link', { url: 'https://a.example/' });
  const waiting = Array.from({ length: MOST }, link);
  await isRefused(link());
  begin();
  await Promise.all(waiting);
  // None waits any more.
  await greet();
  const again = Array.from({ length: MOST }, link);
  await isRefused(link());
  begin();
  await Promise.all(again);
});

test('a host knows who its view is, as far as that says it', async (t) => {
  for (const [appInfo, info] of [
    [
      { name: 'V', version: '2' },
      { name: 'V', version: '2' },
    ],
    [{ name: 'V' }, { name: 'V' }],
    [{}, { name: 'view' }],
    [undefined, { name: 'view' }],
  ]) {
    const { greet, begin, hosting } = open(t);
    await greet({ appInfo, appCapabilities: { tools: {} } });
    begin();
    const host = await hosting;
    await host.ready;
    assert.deepEqual(host.viewInfo, info);
    assert.deepEqual(Object.keys(host.viewInfo), Object.keys(info));
    assert.deepEqual(host.viewCapabilities, { tools: {} });
  }
});

test('a host says what it can do, and nothing else', async (t) => {
  const always = ['experimental', 'sandbox'];
  const each = {
    onOpenLink: ['openLinks', {}],
    onDownloadFile: ['downloadFile', {}],
    onMessage: ['message', { text: {} }],
    onModelContext: ['updateModelContext', { text: {}, structuredContent: {} }],
    onCreateMessage: ['sampling', {}],
    onLog: ['logging', {}],
  };
  const said = async (options) => (await open(t, options).greet()).hostCapabilities;
  assert.deepEqual(Object.keys(await said({})).sort(), always);
  for (const [option, [name, value]] of Object.entries(each)) {
    const capabilities = await said({ [option]() {} });
    assert.deepEqual(capabilities[name], value, option);
    assert.deepEqual(Object.keys(capabilities).sort(), [...always, name].sort());
  }
  const server = () => ({});
  const { serverTools, serverResources } = await said({ server });
  assert.deepEqual([serverTools, serverResources], [{}, {}]);
  const telling = await said({ server, listChanged: true });
  assert.deepEqual(telling.serverTools, { listChanged: true });
});

test('a view that begins again is told anew what its call was, and what ran for it is lost', async (t) => {
  const { view, greet, begin, hosting, heard } = open(t, { onOpenLink() {} });
  await greet();
  begin();
  const host = await hosting;
  await host.ready;
  const before = host.ready;
  host.toolInput({ a: 1 });
  await view.request('ui/open-link', { url: 'https://a.example/' });
  assert.deepEqual(heard.splice(0), [['tool-input', { arguments: { a: 1 } }]]);
  await greet();
  assert.notEqual(host.ready, before);
  begin();
  await host.ready;
  await view.request('ui/open-link', { url: 'https://a.example/' });
  assert.deepEqual(heard, [['tool-input', { arguments: { a: 1 } }]]);
});

test('what a host says between a view’s handshake and its beginning is said once it has begun, and not before', async (t) => {
  const { view, greet, begin, hosting, heard } = open(t);
  await greet();
  begin();
  const host = await hosting;
  await greet();
  host.toolInput({ a: 1 });
  for (const locale of ['eo', 'de']) host.setContext({ locale });
  await view.request('ping');
  assert.deepEqual(heard, []);
  begin();
  await host.request('ping');
  assert.deepEqual(heard, [
    ['tool-input', { arguments: { a: 1 } }],
    ['host-context-changed', { locale: 'eo' }],
    ['host-context-changed', { locale: 'de' }],
  ]);
  assert.equal(view.ended, undefined);
});

test('only links of the web are opened', async (t) => {
  const opened = [];
  const { view, greet, begin } = open(t, { onOpenLink: (url) => void opened.push(url) });
  await greet();
  begin();
  for (const url of [
    'javascript:alert(1)',
    'file:///etc/passwd',
    'data:text/html,x',
    'x',
    5,
    undefined,
  ])
    await assert.rejects(view.request('ui/open-link', { url }), /http/);
  assert.deepEqual(opened, []);
});

test('what a view keeps has a limit, and is kept as it was where it is too much', async (t) => {
  const { view, greet, begin } = open(t, { state: 'before' });
  const keep = (params) => view.request(STATE, params);
  await greet();
  begin();
  assert.deepEqual(await keep({}), { state: 'before' });
  const most = 'x'.repeat(2 ** 20);
  await assert.rejects(keep({ state: [most, 'x'] }));
  assert.deepEqual(await keep({}), { state: 'before' });
  assert.deepEqual(await keep({ state: null }), { state: null });
});

test('a host that has begun does not listen to the signal of its start', async (t) => {
  const followers = [];
  const { any } = AbortSignal;
  t.mock.method(AbortSignal, 'any', (signals) => {
    followers.push(any.call(AbortSignal, signals));
    return followers.at(-1);
  });
  await hostAndView(t, { host: { signal: new AbortController().signal } });
  assert.equal(followers.length, 1);
  assert.deepEqual(getEventListeners(followers[0], 'abort'), []);
});
