// What others can do to a bridge by window messages and ports: threats.md's rows, each with proof that the
// attack was fired, what it got the attacker, and that the honest user noticed nothing.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { CORE, ENGINE, frameAt, sites } from '../support/browser.js';

const BLANK = '/tests/browser/pages/blank.html';
let site, page;
before(async () => {
  site = await sites();
});
after(() => site.close());
beforeEach(async () => {
  page ??= await site.browser.newPage();
  await page.goto(site.hostUrl);
  await page.waitForFunction(() => window.isReady);
});

/** An honest session with one call under way. */
async function honest(options = {}) {
  await page.evaluate((o) => window.open_(o), {
    src: site.appUrl({}),
    origin: site.appOrigin,
    upgrade: 'none',
    ...options,
  });
  await page.evaluate(() => {
    window.pending = window.client.call('hang', {}, { callId: 'known' });
  });
  const app = page.frames()[1];
  await app.waitForFunction(() => window.calls === 1);
  return app;
}

/** The call is as it was: it still runs, and is cancelled by nobody but its owner. */
async function unharmed(app) {
  assert.deepEqual(await app.evaluate(() => [window.calls, window.aborted ?? []]), [1, []]);
  const outcome = await page.evaluate(async () => {
    const state = await Promise.race([window.pending, Promise.resolve('pending')]);
    const echo = await window.client.call('echo', 'honest');
    return [state, echo.data];
  });
  assert.deepEqual(outcome, ['pending', 'honest']);
}

/** Another frame in the host page. */
async function stranger(origin) {
  const url = `${origin}${BLANK}`;
  await page.evaluate((src) => {
    const iframe = document.createElement('iframe');
    iframe.src = src;
    document.body.append(iframe);
  }, url);
  const frame = await frameAt(page, url);
  await frame.waitForFunction(() => window.got);
  return frame;
}

const HOSTILE = [
  { type: 'initialize', id: 'evil', payload: { protocolVersion: '0.1', agent: {}, features: {} } },
  { type: 'capabilities/call', id: 'e1', payload: { capability: 'echo', params: 'stolen' } },
  { type: 'capabilities/cancel', id: 'e2', payload: { callId: 'known', reason: 'forged' } },
  { type: 'shutdown', payload: {} },
  { type: 'capabilities/call-result', id: 'known', payload: { success: true, data: 'forged' } },
  { type: 'bridge/bye', payload: {} },
];

describe('messages from another origin', () => {
  const origins = {
    'another site': (port) => `http://evil.localhost:${port}`,
    'a name that ends like ours': (port) => `http://evil-localhost.localhost:${port}`,
    'a name that begins like ours': (port) => `http://127.0.0.1.evil.localhost:${port}`,
  };
  for (const [what, originOf] of Object.entries(origins)) {
    test(`from ${what} reach neither side`, async () => {
      const app = await honest();
      const origin = originOf(site.appPort);
      const evil = await stranger(origin);
      await evil.evaluate((messages) => {
        for (const message of messages) {
          parent.postMessage(message, '*');
          parent.frames[0].postMessage(message, '*');
        }
      }, HOSTILE);
      for (const target of [page, app]) {
        await target.waitForFunction(
          ([from, n]) => window.heard[from] === n,
          [origin, HOSTILE.length],
        );
      }
      await unharmed(app);
      assert.deepEqual(await evil.evaluate(() => window.got), []);
      assert.deepEqual(await app.evaluate(() => window.exposed.counters.length), 1);
    });
  }

  test('another port of the same host is another origin', async () => {
    const app = await honest();
    const origin = site.hostOrigin.replace('127.0.0.1', 'localhost');
    const evil = await stranger(origin);
    await evil.evaluate((messages) => {
      for (const message of messages) parent.postMessage(message, '*');
    }, HOSTILE);
    await page.waitForFunction(([from, n]) => window.heard[from] === n, [origin, HOSTILE.length]);
    await unharmed(app);
  });
});

describe('messages of the right origin', () => {
  test('from a sibling of the app settle none of the host’s calls', async () => {
    const app = await honest();
    const twin = await stranger(site.appOrigin);
    await twin.evaluate((messages) => {
      for (const message of messages) parent.postMessage(message, '*');
    }, HOSTILE);
    await page.waitForFunction(
      ([from, n]) => window.heard[from] >= n,
      [site.appOrigin, HOSTILE.length],
    );
    await unharmed(app);
  });

  test('from a sibling of the host cancel none of its calls', async () => {
    const app = await honest();
    const twin = await stranger(site.hostOrigin);
    await twin.evaluate(() => {
      const cancel = { type: 'capabilities/cancel', id: 'e', payload: { callId: 'known' } };
      parent.frames[0].postMessage(cancel, '*');
    });
    await twin.waitForFunction(() => window.got.length === 1);
    const [{ data }] = await twin.evaluate(() => window.got);
    assert.equal(data.payload.cancelled, false);
    assert.equal(data.payload.error.code, 'NOT_INITIALIZED');
    await unharmed(app);
  });

  test('from a sibling of the host with a session of its own cancel only its own', async () => {
    const app = await honest();
    const twin = await stranger(site.hostOrigin);
    await twin.evaluate((messages) => {
      for (const message of messages.slice(0, 3)) parent.frames[0].postMessage(message, '*');
    }, HOSTILE);
    await twin.waitForFunction(() => window.got.length === 3);
    const answer = (await twin.evaluate(() => window.got)).at(-1).data;
    assert.equal(answer.payload.reason, 'Operation not found');
    assert.equal(await app.evaluate(() => window.exposed.sessions.length), 2);
    await app.evaluate(() => (window.calls = 1));
    await unharmed(app);
  });

  test('made by a script, not by the browser, are not believed', async () => {
    const app = await honest();
    await page.evaluate(
      ([origin, messages]) => {
        const { contentWindow: source } = window.iframe;
        for (const data of messages) {
          dispatchEvent(new MessageEvent('message', { data, origin, source }));
        }
      },
      [site.appOrigin, HOSTILE],
    );
    assert.ok((await page.evaluate((o) => window.heard[o], site.appOrigin)) >= HOSTILE.length);
    await unharmed(app);
  });

  test('by window are ignored once there is a port, and answered by nobody', async () => {
    const app = await honest({ upgrade: 'frames' });
    await app.evaluate(
      ([target, messages]) => {
        for (const message of messages) parent.postMessage(message, target);
      },
      [site.hostOrigin, HOSTILE],
    );
    await page.evaluate(
      ([target, messages]) => {
        for (const message of messages.slice(1))
          window.iframe.contentWindow.postMessage(message, target);
      },
      [site.appOrigin, HOSTILE],
    );
    await app.waitForFunction(
      ([from, n]) => window.heard[from] > n,
      [site.hostOrigin, HOSTILE.length - 1],
    );
    await unharmed(app);
  });

  test('with ports that nobody asked for: the ports are closed, the offer is not taken', async () => {
    const app = await honest({ upgrade: 'frames' });
    await app.evaluate((target) => {
      const { port1, port2 } = new MessageChannel();
      window.mine = port1;
      const payload = { sessionId: 'again', features: { 'bridge.port': true } };
      parent.postMessage({ type: 'initialize-result', id: 'x', payload }, target, [port2]);
    }, site.hostOrigin);
    await page.waitForFunction((from) => window.heard[from] >= 2, site.appOrigin);
    await unharmed(app);
  });
});

describe('a sandboxed app', () => {
  const sandboxed = { attributes: { sandbox: 'allow-scripts' }, origin: 'null', upgrade: 'frames' };

  test('works by the port that it offers', async () => {
    const app = await honest(sandboxed);
    await unharmed(app);
  });

  test('that navigates to an attacker takes nothing along: it sees initialize and no more', async () => {
    await honest({ ...sandboxed, timeout: 1500 });
    const url = `http://evil.localhost:${site.appPort}${BLANK}`;
    await page.frames()[1].evaluate((to) => void (location.href = to), url);
    const evil = await frameAt(page, url);
    const outcome = await page.evaluate(async () => {
      const pending = await window.pending;
      const late = await window.client.call('echo', { secret: 1 });
      const again = await window.client.reconnect().catch((error) => error.code);
      return [pending.error.code, late.error.code, again];
    });
    assert.deepEqual(outcome, ['DISCONNECTED', 'DISCONNECTED', 'TIMEOUT']);
    const types = (await evil.evaluate(() => window.got)).map(({ data }) => data.type);
    assert.ok(types.length > 0, 'the attacker heard the handshake');
    assert.deepEqual([...new Set(types)], ['initialize']);
  });

  test('that offers no port is refused', async () => {
    const message = await page
      .evaluate((o) => window.open_(o), {
        ...sandboxed,
        src: site.appUrl({ upgrade: 'none', origins: [site.hostOrigin] }),
      })
      .catch((error) => error.message);
    assert.match(message, /A sandboxed app must offer a port/);
  });

  test('is only spoken to when it was asked for: an exact origin never means "null"', async () => {
    const code = await page.evaluate((o) => window.open_(o).catch((error) => error.code), {
      ...sandboxed,
      origin: site.appOrigin,
      src: site.appUrl({}),
      timeout: 500,
    });
    assert.equal(code, 'TIMEOUT');
  });
});

test('a frame that navigates to an attacker under an exact origin: nothing is sent there', async () => {
  const app = await honest();
  const url = `http://evil.localhost:${site.appPort}${BLANK}`;
  await app.evaluate((to) => void (location.href = to), url);
  const evil = await frameAt(page, url);
  await evil.waitForFunction(() => window.got);
  await page.evaluate(() => void window.client.call('echo', { secret: 1 }));
  await page.evaluate(() => window.iframe.contentWindow.postMessage('proof', '*'));
  await evil.waitForFunction(() => window.got.length === 1);
  assert.deepEqual(await evil.evaluate(() => window.got.map(({ data }) => data)), ['proof']);
});

test('a frame that navigates to an attacker: what it says from the same window is not believed', async () => {
  const app = await honest();
  const origin = `http://evil.localhost:${site.appPort}`;
  const forged = encodeURIComponent(JSON.stringify(HOSTILE));
  await app.evaluate((to) => void (location.href = to), `${origin}${BLANK}#${forged}`);
  await page.waitForFunction(([from, n]) => window.heard[from] === n, [origin, HOSTILE.length]);
  const response = await page.evaluate(() => window.pending);
  assert.equal(response.error.code, 'DISCONNECTED');
});

// Millions in Chromium, once; the others answer a tenth of it in the same time.
const FLOOD = ENGINE === 'chromium' && CORE === 'wasm' ? 1_000_000 : 50_000;
test(`${FLOOD} calls at once: each is answered, few run, and another agent notices nothing`, async () => {
  await page.goto(site.appUrl({}));
  await page.waitForFunction(() => window.exposed);
  const outcome = await page.evaluate(
    async ([limit, wanted]) => {
      const { expose, connect } = await import('/js/index.js');
      const flood = new MessageChannel();
      const fair = new MessageChannel();
      let running = 0;
      let most = 0;
      const hang = (_params, { signal }) => {
        most = Math.max(most, ++running);
        return new Promise((resolve) => signal.addEventListener('abort', resolve)).then(
          () => running--,
        );
      };
      const definition = {
        app: { id: 'a', name: 'A', version: '1' },
        capabilities: { hang, echo: (x) => x },
      };
      for (const { port1 } of [flood, fair]) {
        expose(definition, { port: port1, limits: { maxCalls: limit, heartbeat: 600_000 } });
      }
      // The flood shares this page's thread: silence is not what is tested here.
      const honest = await connect(fair.port2, {
        agent: { name: 'h', version: '1' },
        limits: { heartbeat: 600_000 },
      });
      const attacker = flood.port2;
      const codes = {};
      let answers = 0;
      const done = new Promise((resolve) => {
        attacker.onmessage = ({ data: { type, payload } }) => {
          if (type !== 'capabilities/call-result') return;
          codes[payload.error.code] = (codes[payload.error.code] ?? 0) + 1;
          if (++answers === wanted - limit) resolve();
        };
      });
      const payload = { protocolVersion: '0.1', agent: {}, features: {} };
      attacker.postMessage({ type: 'initialize', id: 'i', payload });
      for (let i = 0; i < wanted; i++) {
        attacker.postMessage({
          type: 'capabilities/call',
          id: `${i}`,
          payload: { capability: 'hang' },
        });
      }
      const echo = await honest.call('echo', 'honest');
      await done;
      return { codes, most, echo: echo.data };
    },
    [100, FLOOD],
  );
  assert.deepEqual(outcome, { codes: { RATE_LIMITED: FLOOD - 100 }, most: 100, echo: 'honest' });
});
