// What others can do to a bridge by window messages and ports: rows of tests/threats.md, each with
// proof that the attack was fired, what it got the attacker, and that the honest user noticed
// nothing.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { frameAt, sites } from '../support/browser.js';

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
    'a name that a pattern would take for ours': (port) => `http://127x0x0x1.localhost:${port}`,
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

test('a page that an attacker embeds serves only the hosts that it names', async () => {
  const url = site.appUrl({ origins: ['http://only.localhost:1'] });
  await page.evaluate((src) => void window.embed(src), url);
  const app = await frameAt(page, url);
  await app.waitForFunction(() => window.exposed);
  await page.evaluate((messages) => {
    window.answers = [];
    addEventListener('message', ({ data }) => window.answers.push(data));
    for (const message of messages) window.iframe.contentWindow.postMessage(message, '*');
  }, HOSTILE);
  await app.waitForFunction(
    ([from, n]) => window.heard[from] === n,
    [site.hostOrigin, HOSTILE.length],
  );
  assert.deepEqual(await app.evaluate(() => [window.calls, window.exposed.counters]), [0, []]);
  assert.deepEqual(await page.evaluate(() => window.answers), []);
});

test('messages of a frame within the app, of the app’s own origin, are not the app’s', async () => {
  const app = await honest({ src: site.appUrl({ embeds: true }) });
  await app.evaluate(
    ([src, messages]) => {
      const inner = document.createElement('iframe');
      inner.src = `${src}#${encodeURIComponent(JSON.stringify(messages))}`;
      // What it says to its parent, it says to the host as well.
      addEventListener('message', ({ source, data }) => {
        if (source === inner.contentWindow) window.repeated = [...(window.repeated ?? []), data];
      });
      document.body.append(inner);
    },
    [BLANK, HOSTILE],
  );
  await app.waitForFunction((n) => window.repeated?.length === n, HOSTILE.length);
  await app.evaluate((messages) => {
    // A same-origin parent may speak through its child's window: then the child is the source.
    const script = document.querySelector('iframe').contentDocument.createElement('script');
    script.textContent = `for (const m of ${JSON.stringify(messages)}) top.postMessage(m, '*')`;
    document.querySelector('iframe').contentDocument.body.append(script);
  }, HOSTILE);
  await page.waitForFunction(
    ([from, n]) => window.heard[from] >= n,
    [site.appOrigin, HOSTILE.length],
  );
  await unharmed(app);
});

test('a burst of messages from a frame that is removed meanwhile settles nothing twice', async () => {
  const app = await honest();
  await page.evaluate(() => {
    window.sourceless = 0;
    addEventListener('message', ({ source }) => {
      if (!source) window.sourceless++;
    });
  });
  await app.evaluate((to) => {
    const payload = { success: true, data: 'late' };
    for (let i = 0; i < 2000; i++) {
      parent.postMessage({ type: 'capabilities/call-result', id: `x${i}`, payload }, to);
    }
    parent.postMessage({ type: 'capabilities/call-result', id: 'known', payload }, to);
  }, site.hostOrigin);
  const outcome = await page.evaluate(async () => {
    window.iframe.remove();
    const response = await window.pending;
    return { code: response.error?.code, data: response.data };
  });
  // The answer was the app's own, if it came before the frame went; the burst settled nothing else.
  assert.ok(outcome.code === 'DISCONNECTED' || outcome.data === 'late', JSON.stringify(outcome));
  const heard = await page.evaluate(
    (from) => (window.heard[from] ?? 0) + window.sourceless,
    site.appOrigin,
  );
  assert.ok(heard > 0, 'the burst was fired');
});

test('what another site may not have does not stop the port: the session goes on', async () => {
  const app = await honest({ upgrade: 'frames' });
  const unreadable = await app.evaluate(async () => {
    // A module and shared memory are for the same process only. Where the core is JavaScript,
    // neither exists.
    const [connection] = window.exposed.sessions;
    const { transport } = connection.endpoint;
    if (typeof SharedArrayBuffer === 'function') {
      try {
        transport.post(new SharedArrayBuffer(8));
        return true;
      } catch {
        return false;
      }
    }
    const empty = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
    const module = await WebAssembly.compile(empty).catch(() => undefined);
    if (module) transport.post(module);
    return module !== undefined;
  });
  await page.evaluate(() => window.client.call('echo', 1));
  const { malformed } = await page.evaluate(() => window.client.counters);
  assert.equal(malformed, unreadable ? 1 : 0);
  await app.evaluate(() => (window.calls = 1));
  await unharmed(app);
});

test('two agents that use the same ids never hear of each other', async () => {
  const outcome = await page.evaluate(
    async ([src, origin]) => {
      const options = { origin, agent: { name: 'two', version: '1' } };
      const frames = ['one', 'two'].map((name) => {
        const iframe = document.createElement('iframe');
        iframe.src = src.replace('SERIAL', name);
        document.body.append(iframe);
        return iframe;
      });
      const [one, two] = await Promise.all(frames.map((iframe) => window.connect(iframe, options)));
      const hanging = one.call('hang', {}, { callId: 'same' });
      const other = two.call('hang', {}, { callId: 'same' });
      const cancelled = await two.cancel('same');
      const answers = [
        cancelled.cancelled,
        (await other).cancelled,
        await Promise.race([hanging, Promise.resolve('pending')]),
        (await one.call('echo', 'one', { callId: 'x' })).data,
        (await two.call('echo', 'two', { callId: 'x' })).data,
      ];
      one.close();
      two.close();
      return answers;
    },
    [site.appUrl({ serial: 'SERIAL' }), site.appOrigin],
  );
  assert.deepEqual(outcome, [true, true, 'pending', 'one', 'two']);
});

for (const count of [0, 2, 100]) {
  test(`an app that offers ${count} ports instead of one is refused, and they are closed`, async () => {
    const url = `${site.appOrigin}${BLANK}#offer-${count}`;
    const refused = page.evaluate(
      ([src, origin]) => {
        const iframe = window.embed(src);
        return window
          .connect(iframe, { origin, agent: { name: 'a', version: '1' }, timeout: 300_000 })
          .then(
            () => 'connected',
            (error) => `${error.code}: ${error.message}`,
          );
      },
      [url, site.appOrigin],
    );
    assert.equal(await refused, `TRANSPORT_ERROR: The app agreed to a port but sent ${count}`);
  });
}

describe('a sandboxed app', () => {
  const sandboxed = { attributes: { sandbox: 'allow-scripts' }, origin: 'null', upgrade: 'frames' };

  test('works by the port that it offers', async () => {
    const app = await honest(sandboxed);
    await unharmed(app);
  });

  test('that navigates to an attacker takes nothing along: it sees initialize and no more', async () => {
    await honest({ ...sandboxed, loaded: true, timeout: 5000 });
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
    assert.match(message, /A sandboxed app must use a port/);
  });

  test('is only spoken to when it was asked for: an exact origin never means "null"', async () => {
    const code = await page.evaluate(
      async ([src, origin]) => {
        const iframe = window.embed(src, { sandbox: 'allow-scripts' });
        await new Promise((resolve) => (iframe.onload = resolve));
        // Its document stays in the sandbox. With the attribute, connect would refuse at once.
        iframe.removeAttribute('sandbox');
        const agent = { name: 'a', version: '1' };
        return window.connect(iframe, { origin, timeout: 500, agent }).catch(({ code }) => code);
      },
      [site.appUrl({}), site.appOrigin],
    );
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
