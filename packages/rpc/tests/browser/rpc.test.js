// JSON-RPC between a page and its iframe: our channel under other people's SDKs, and MCP Apps with
// the real ext-apps on the other side, in a real browser and from another origin.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { CORE, frameAt, sites } from '../../../../tests/support/browser.js';

const HOST = '/packages/rpc/tests/browser/pages/host.html';
const APP = '/packages/rpc/tests/browser/pages/app.html';
const BLANK = '/tests/browser/pages/blank.html';
let site, page;
before(async () => {
  site = await sites();
});
after(() => site.close());
beforeEach(async () => {
  page ??= await site.browser.newPage();
  await page.goto(site.hostOrigin + HOST);
  await page.waitForFunction(() => window.isReady);
});

const appUrl = (options) =>
  `${site.appOrigin}${APP}?${encodeURIComponent(JSON.stringify({ origins: [site.hostOrigin], ...options }))}`;

/** The frame of the app, once its end is up. */
async function appFrame(url) {
  const frame = await frameAt(page, url);
  await frame.waitForFunction(() => window.end);
  return frame;
}

/** Opens an app by an SDK. */
async function open(sdk, { upgrade, ...more } = {}) {
  const src = appUrl({ sdk, upgrade });
  const origin = site.appOrigin;
  await page.evaluate((o) => window.open_(o), { sdk, src, origin, upgrade, ...more });
  return appFrame(src);
}

const call = (realm, key, ...args) => realm.evaluate((a) => window.call(...a), [key, ...args]);
const outcome = (realm, key) => realm.evaluate((k) => window.calls[k].outcome, key);
const abort = (realm, key, reason) =>
  realm.evaluate(([k, why]) => window.calls[k].controller.abort(new Error(why)), [key, reason]);
const logged = (realm, ...lines) =>
  realm.waitForFunction((wanted) => `${window.log.slice(-wanted.length)}` === `${wanted}`, lines);
/** The words that are no JSON-RPC, by what they say. */
const words = (realm) => realm.evaluate(() => window.words.map((w) => w['abp-bridge']));

const DIRECTIONS = {
  'MCP SDK 1.x': ['host', 'app'],
  'MCP SDK 2.x': ['host'],
  'ACP SDK': ['host', 'app'],
};

for (const [sdk, callers] of Object.entries(DIRECTIONS)) {
  describe(`${sdk} on our channel`, () => {
    for (const who of callers) {
      test(`the ${who} calls: answered, cancelled, and again`, async () => {
        const app = await open(sdk);
        const [caller, callee] = who === 'host' ? [page, app] : [app, page];
        await call(caller, 'a', 'echo', { text: 'é😀' });
        assert.deepEqual(await outcome(caller, 'a'), { value: { text: 'é😀' } });
        await call(caller, 'b', 'hang', {});
        await logged(callee, 'started');
        await abort(caller, 'b', 'enough');
        assert.equal((await outcome(caller, 'b')).value, undefined);
        await logged(callee, 'started', 'aborted');
        await call(caller, 'c', 'echo', 1);
        assert.deepEqual(await outcome(caller, 'c'), { value: 1 });
      });
    }
  });
}

// Which SDK is on the channel decides nothing here: tests/interop/adapters.test.js has all of them.
describe('the end of the channel', () => {
  const sdk = 'ACP SDK';

  for (const who of ['host', 'app'])
    test(`the ${who} calls, and the app is reloaded: both sides are told`, async () => {
      const app = await open(sdk);
      const [caller, callee] = who === 'host' ? [page, app] : [app, page];
      await call(caller, 'a', 'hang', {});
      await logged(callee, 'started');
      await app.evaluate(() => void location.reload());
      if (who === 'host') assert.equal((await outcome(page, 'a')).value, undefined);
      else await logged(page, 'started', 'aborted');
      // The new document can be spoken with, on a channel of its own.
      await page.evaluate((o) => window.again(o), { sdk, origin: site.appOrigin });
      await call(page, 'b', 'echo', 'again');
      assert.deepEqual(await outcome(page, 'b'), { value: 'again' });
    });

  test('the iframe is removed: what waits for it is rejected', async () => {
    const app = await open(sdk);
    await call(page, 'a', 'hang', {});
    await logged(app, 'started');
    await page.evaluate(() => window.iframe.remove());
    assert.equal((await outcome(page, 'a')).value, undefined);
  });

  test('the host closes: the app’s handlers are aborted', async () => {
    const app = await open(sdk);
    await call(page, 'a', 'hang', {});
    await logged(app, 'started');
    await page.evaluate(() => void window.end.close());
    await logged(app, 'started', 'aborted');
    assert.equal((await outcome(page, 'a')).value, undefined);
  });
});

describe('the channel', () => {
  const sdk = 'ACP SDK';

  test('moves to a port that the app’s document offers, and leaves the window', async () => {
    const app = await open(sdk);
    await page.waitForFunction(() => window.words.some((w) => w['abp-bridge'] === 'moved'));
    assert.deepEqual(new Set(await words(app)), new Set(['hello', 'taken']));
    const before = await page.evaluate((o) => window.heard[o], site.appOrigin);
    for (let i = 0; i < 5; i++) {
      await call(page, 'a', 'echo', i);
      assert.deepEqual(await outcome(page, 'a'), { value: i });
    }
    assert.equal(await page.evaluate((o) => window.heard[o], site.appOrigin), before);
  });

  test('keeps to plain window messages where either side wants that', async () => {
    const app = await open(sdk, { upgrade: 'none' });
    const before = await page.evaluate((o) => window.heard[o], site.appOrigin);
    await call(page, 'a', 'echo', 1);
    assert.deepEqual(await outcome(page, 'a'), { value: 1 });
    assert.equal(await page.evaluate((o) => window.heard[o], site.appOrigin), before + 1);
    assert.deepEqual([await words(app), await words(page)], [[], ['here']]);
    await call(page, 'b', 'hang', {});
    await logged(app, 'started');
    await app.evaluate(() => void location.reload());
    assert.equal((await outcome(page, 'b')).value, undefined);
  });

  test('hears that the app’s document goes, before another has come', async () => {
    const app = await open(sdk);
    await call(page, 'a', 'hang', {});
    await logged(app, 'started');
    const release = site.hold('/tests/browser/pages/app.js');
    await app.evaluate(() => void (location.href = '/tests/browser/pages/app.html'));
    assert.equal((await outcome(page, 'a')).value, undefined);
    release();
  });

  test('waits for an app that is still loading', async () => {
    const release = site.hold('/packages/rpc/tests/browser/pages/app.js');
    const src = appUrl({ sdk });
    // It resolves when the app has answered `initialize`.
    const opened = page.evaluate((o) => window.open_(o), { sdk, src, origin: site.appOrigin });
    await new Promise((resolve) => setTimeout(resolve, 100));
    release();
    await opened;
    await call(page, 'a', 'echo', 1);
    assert.deepEqual(await outcome(page, 'a'), { value: 1 });
  });

  test('speaks to somebody else’s app once that has spoken, or is said to have loaded', async () => {
    const url = site.appOrigin + BLANK;
    await page.evaluate((src) => void window.embed(src), url);
    const app = await frameAt(page, url);
    await app.waitForFunction(() => window.got && document.readyState === 'complete');
    const post = (options, method) =>
      page.evaluate(
        ([o, message]) => window.windowChannel(window.iframe, o).post(message),
        [
          { origin: site.appOrigin, ...options },
          { jsonrpc: '2.0', method },
        ],
      );
    const heard = () =>
      app.evaluate(() => window.got.map(({ data }) => data.method).filter(Boolean));
    await post({}, 'waits');
    await post({ loaded: true }, 'at once');
    await app.waitForFunction(() => window.got.some(({ data }) => data.method === 'at once'));
    assert.deepEqual(await heard(), ['at once']);
    await app.evaluate(() => parent.postMessage({ jsonrpc: '2.0', method: 'any' }, '*'));
    await app.waitForFunction(() => window.got.some(({ data }) => data.method === 'waits'));
  });

  test('keeps a document of its own origin that fires `load` again, and not the next one', async () => {
    await page.evaluate(async (src) => {
      window.embed(src);
      await new Promise((resolve) => (window.iframe.onload = resolve));
      const channel = window.windowChannel(window.iframe, {
        origin: location.origin,
        loaded: true,
      });
      channel.onMessage = () => {};
      window.gone = new Promise((resolve) => (channel.onClose = resolve));
      void window.gone.then(() => (window.isGone = true));
      window.isGone = false;
      // As in some engines when the document goes back in its history, or sets its hash.
      window.iframe.dispatchEvent(new Event('load'));
    }, site.hostOrigin + BLANK);
    assert.equal(await page.evaluate(() => window.isGone), false);
    await page.evaluate(() => window.iframe.contentWindow.location.reload());
    await page.evaluate(() => window.gone.then(() => true));
  });

  test('takes one offer of one port, from the document that it greeted', async () => {
    const url = site.appOrigin + BLANK;
    await page.evaluate((src) => void window.embed(src), url);
    const app = await frameAt(page, url);
    await app.waitForFunction(() => window.got);
    await page.evaluate((origin) => {
      const channel = window.windowChannel(window.iframe, { origin });
      channel.onMessage = ({ method }) => window.log.push(method);
      channel.onClose = () => window.log.push('closed');
    }, site.appOrigin);
    await app.evaluate(() => {
      window.say = (word, more, transfer) =>
        parent.postMessage({ 'abp-bridge': word, document: 'mine', ...more }, '*', transfer);
      window.say('here');
    });
    await app.waitForFunction(() => window.got.length);
    const taken = await app.evaluate(async () => {
      const { to } = window.got.at(-1).data;
      const offer = (n, more) => {
        const channels = Array.from({ length: n }, () => new MessageChannel());
        for (const { port1 } of channels) port1.postMessage([6, 0, 0, { method: `by ${n}` }]);
        window.say(
          'offer',
          { to, ...more },
          channels.map(({ port2 }) => port2),
        );
      };
      offer(1, { to: 'another' });
      offer(0);
      offer(2);
      offer(1);
      offer(1);
      window.say('moved', { document: 'another' });
      window.say('moved');
      window.say('moved');
      const heard = () => window.got.filter(({ data }) => data['abp-bridge'] === 'taken');
      while (!heard().length) await new Promise((resolve) => setTimeout(resolve, 5));
      return heard().length;
    });
    // What comes by the port and by the window has no order.
    await page.waitForFunction(() => window.log.length);
    await app.evaluate(() => window.say('here', { document: 'the next' }));
    await page.waitForFunction(() => window.log.includes('closed'));
    assert.equal(taken, 1);
    assert.deepEqual(await page.evaluate(() => window.log), ['by 1', 'closed']);
  });

  test('answers for what waited and cannot be sent, and sends the rest', async () => {
    const release = site.hold('/packages/rpc/tests/browser/pages/app.js');
    // A server is up without an answer from its client.
    const host = { sdk, role: 'server', src: appUrl({ sdk, role: 'client' }) };
    await page.evaluate((o) => window.open_(o), { ...host, origin: site.appOrigin });
    await page.evaluate(() => {
      window.failed = window.end.call('echo', { f() {} }).catch((error) => error.message);
    });
    await call(page, 'a', 'echo', 1);
    release();
    assert.match(await page.evaluate(() => window.failed), /cannot be sent/);
    assert.deepEqual(await outcome(page, 'a'), { value: 1 });
  });

  test('reaches a sandboxed app by its own port only, and no document after it', async () => {
    const src = appUrl({ sdk });
    const attributes = { sandbox: 'allow-scripts' };
    await page.evaluate((o) => window.open_(o), { sdk, src, origin: 'null', attributes });
    const app = await appFrame(src);
    await call(page, 'a', 'echo', 1);
    assert.deepEqual(await outcome(page, 'a'), { value: 1 });
    await call(app, 'b', 'echo', 2);
    assert.deepEqual(await outcome(app, 'b'), { value: 2 });
    assert.equal(
      await app.evaluate(() => window.heard[Object.keys(window.heard)[0]]),
      (await words(app)).length,
      'nothing but our own words goes to any origin',
    );
    await call(page, 'c', 'hang', {});
    await logged(app, 'started');
    const elsewhere = `${site.appOrigin}${BLANK}`;
    await page.evaluate((url) => void (window.iframe.src = url), elsewhere);
    assert.equal((await outcome(page, 'c')).value, undefined);
    const later = await frameAt(page, elsewhere);
    await later.waitForFunction(() => window.got);
    await call(page, 'd', 'echo', 'secret');
    assert.equal((await outcome(page, 'd')).value, undefined);
    const got = await later.evaluate(() => JSON.stringify(window.got));
    assert.ok(!got.includes('secret'), got);
  });

  test('is with a worker as with anybody', async () => {
    await page.evaluate(() => window.openWorker());
    await call(page, 'a', 'echo', 1);
    assert.deepEqual(await outcome(page, 'a'), { value: 1 });
    await call(page, 'b', 'hang', {});
    await abort(page, 'b', 'enough');
    assert.equal((await outcome(page, 'b')).value, undefined);
    await call(page, 'c', 'aborted', {});
    assert.deepEqual(await outcome(page, 'c'), { value: 1 });
    await call(page, 'd', 'hang', {});
    await page.evaluate(() => window.end.close());
    assert.equal((await outcome(page, 'd')).value, undefined);
  });

  const HOSTILE = [
    { jsonrpc: '2.0', id: 'evil', method: '_call', params: { name: 'hang', params: {} } },
    { jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 1 } },
    ...[0, 1, 2, 3].map((id) => ({ jsonrpc: '2.0', id, result: { value: 'forged' } })),
    { 'abp-bridge': 'here', document: 'forged' },
    { 'abp-bridge': 'hello', to: 'forged' },
    { 'abp-bridge': 'taken', to: 'forged' },
    { 'abp-bridge': 'moved', document: 'forged' },
  ];

  for (const upgrade of ['frames', 'none']) {
    test(`believes no other origin, no sibling and no forged event (${upgrade})`, async () => {
      const app = await open(sdk, { upgrade });
      await call(page, 'a', 'hang', {});
      await logged(app, 'started');
      const [evil, twin] = await Promise.all(
        [`http://evil.localhost:${site.appPort}`, site.appOrigin].map(async (origin) => {
          const url = `${origin}${BLANK}`;
          await page.evaluate((src) => {
            const frame = document.createElement('iframe');
            document.body.append(Object.assign(frame, { src }));
          }, url);
          const frame = await frameAt(page, url);
          await frame.waitForFunction(() => window.got);
          return frame;
        }),
      );
      const before = await page.evaluate((o) => window.heard[o], site.appOrigin);
      for (const stranger of [evil, twin]) {
        await stranger.evaluate((messages) => {
          for (const message of messages) {
            parent.postMessage(message, '*');
            parent.frames[0].postMessage(message, '*');
          }
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = () => window.got.push('port');
          parent.postMessage({ 'abp-bridge': 'offer', to: 'forged' }, '*', [port2]);
        }, HOSTILE);
      }
      // A page's own scripts may make events that look like the real ones.
      await page.evaluate(
        ([messages, origin]) => {
          const source = window.iframe.contentWindow;
          for (const data of messages) {
            dispatchEvent(new MessageEvent('message', { data, origin, source }));
          }
        },
        [HOSTILE, site.appOrigin],
      );
      const all = 2 * HOSTILE.length + 1;
      await page.waitForFunction(([o, n]) => window.heard[o] === n, [site.appOrigin, before + all]);
      await app.waitForFunction(
        ([o, n]) => window.heard[o] === n,
        [`http://evil.localhost:${site.appPort}`, HOSTILE.length],
      );
      await call(page, 'b', 'echo', 'honest');
      assert.deepEqual(await outcome(page, 'b'), { value: 'honest' });
      assert.deepEqual(await page.evaluate(() => window.log), []);
      assert.deepEqual(await app.evaluate(() => window.log), ['started']);
      for (const stranger of [evil, twin]) {
        assert.deepEqual(await stranger.evaluate(() => window.got), []);
      }
    });
  }

  test('believes no other origin in the same window', async () => {
    const popup = page.waitForEvent('popup');
    const src = appUrl({ sdk, host: 'opener', upgrade: 'none' });
    const origin = site.appOrigin;
    await page.evaluate((o) => window.open_(o), { sdk, src, origin, popup: true, upgrade: 'none' });
    const app = await popup;
    await call(page, 'a', 'hang', {});
    await logged(app, 'started');
    // Nothing tells that it goes: it was killed, say.
    await app.evaluate(() =>
      addEventListener('pagehide', (e) => e.stopImmediatePropagation(), true),
    );
    const evil = `http://evil.localhost:${site.appPort}`;
    await app.evaluate((url) => void (location.href = url), evil + BLANK);
    await app.waitForURL(evil + BLANK);
    await app.evaluate((messages) => {
      for (const message of messages) opener.postMessage(message, '*');
    }, HOSTILE);
    await page.waitForFunction(([o, n]) => window.heard[o] === n, [evil, HOSTILE.length]);
    const state = await page.evaluate(() =>
      Promise.race([window.calls.a.outcome, Promise.resolve('pending')]),
    );
    assert.notEqual(state.value, 'forged');
    assert.deepEqual(await page.evaluate(() => window.log), []);
    await app.close();
  });

  test('says nothing to a page that may not embed the app, and hears nothing from it', async () => {
    const evil = `http://evil.localhost:${site.appPort}`;
    await page.goto(evil + HOST);
    await page.waitForFunction(() => window.isReady);
    const src = appUrl({ sdk });
    await page.evaluate((o) => void window.open_(o), { sdk, src, origin: site.appOrigin });
    const app = await appFrame(src);
    await page.evaluate((messages) => {
      for (const message of messages) window.iframe.contentWindow.postMessage(message, '*');
    }, HOSTILE);
    await app.waitForFunction(([o, n]) => window.heard[o] >= n, [evil, HOSTILE.length]);
    await app.evaluate(() => window.end.call('echo', 'secret').catch(() => {}) && undefined);
    // A round trip, past all that it may have said.
    await app.evaluate(() => parent.postMessage('done', '*'));
    await page.waitForFunction(() => window.words.includes('done'));
    assert.equal(await page.evaluate((o) => window.heard[o], site.appOrigin), 1);
    assert.deepEqual(await app.evaluate(() => window.log), []);
  });
});

describe('MCP Apps', () => {
  const PAIRS = [
    ['their AppBridge on our channel', 'their App on our channel'],
    ['their AppBridge on our channel', 'their App'],
    ['their AppBridge', 'their App on our channel'],
  ];

  for (const [host, view] of PAIRS) {
    describe(`${host}, ${view}`, () => {
      let app;
      beforeEach(async () => {
        const src = appUrl({ view });
        await page.evaluate((o) => window.openView(o), { host, src, origin: site.appOrigin });
        app = await appFrame(src);
      });
      const host_ = (action, ...args) =>
        page.evaluate(([a, p]) => window.end[a](...p), [action, args]);

      test('initialized, tool input, result, cancelled, teardown', async () => {
        await host_('input', { q: 1 });
        await host_('result', { r: 2 });
        await host_('cancelled', 'user action');
        assert.deepEqual(await host_('teardown'), {});
        assert.deepEqual(await app.evaluate(() => window.log), [
          'initialized',
          'input {"arguments":{"q":1}}',
          'result {"r":2}',
          'cancelled {"reason":"user action"}',
          'teardown',
        ]);
        assert.deepEqual(await page.evaluate(() => window.log), []);
        for (const realm of [page, app])
          assert.equal(await realm.evaluate(() => window.core), CORE);
      });

      for (const who of ['view', 'host']) {
        test(`the ${who} calls a tool, and cancels one`, async () => {
          const [caller, callee] = who === 'view' ? [app, page] : [page, app];
          await call(caller, 'a', 'echo', { x: 'é😀' });
          assert.deepEqual(await outcome(caller, 'a'), { value: { x: 'é😀' } });
          await call(caller, 'b', 'hang', {});
          await logged(callee, 'started');
          await abort(caller, 'b', 'user pressed stop');
          assert.equal((await outcome(caller, 'b')).value, undefined);
          await logged(callee, 'started', 'aborted');
          await call(caller, 'c', 'echo', 1);
          assert.deepEqual(await outcome(caller, 'c'), { value: 1 });
          const errors = (realm) => realm.evaluate(() => window.log.filter((l) => /error/.test(l)));
          assert.deepEqual([await errors(app), await errors(page)], [[], []]);
        });
      }
    });
  }
});
