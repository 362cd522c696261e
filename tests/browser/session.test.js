// How calls end when the page under them changes, and how data is moved, in a real browser.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { CORE, ENGINE, frameAt, processOf, sites } from '../support/browser.js';

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

const open = (options = {}, appOptions = {}) =>
  page.evaluate((o) => window.open_(o), {
    src: site.appUrl(appOptions),
    origin: site.appOrigin,
    ...options,
  });

describe('the document under a call', () => {
  const ENDINGS = {
    'is reloaded': (frame) => frame.evaluate(() => void location.reload()),
    'navigates elsewhere': (frame) => frame.evaluate(() => void (location.href = 'about:blank')),
    'is removed': () => page.evaluate(() => window.iframe.remove()),
    'gets another address': () => page.evaluate(() => void (window.iframe.src = 'about:blank')),
  };
  for (const [what, end] of Object.entries(ENDINGS)) {
    test(`${what}: its call settles with DISCONNECTED`, async () => {
      await open();
      await page.evaluate(() => {
        window.pending = window.client.call('hang');
      });
      const frame = page.frames()[1];
      await frame.waitForFunction(() => window.calls === 1);
      await end(frame);
      const response = await page.evaluate(() => window.pending);
      assert.equal(response.success, false);
      assert.equal(response.error.code, 'DISCONNECTED');
      assert.equal(response.error.retryable, false);
      assert.equal(response.metadata.outcome, 'unknown');
      assert.equal(response.cancelled, undefined);
      await page.waitForFunction(() => window.lost?.length === 1);
      assert.equal(await page.evaluate(() => window.client.connected), false);
      const later = await page.evaluate(() => window.client.call('echo'));
      assert.equal(later.error.code, 'DISCONNECTED');
    });
  }

  test('is removed where the app is a plain one: its call settles, too', async () => {
    await open({}, { kind: 'plain' });
    await page.evaluate(() => {
      window.pending = window.client.call('hang');
    });
    await page.frames()[1].waitForFunction(() => window.calls === 1);
    await page.evaluate(() => window.iframe.remove());
    const response = await page.evaluate(() => window.pending);
    assert.equal(response.error.code, 'DISCONNECTED');
  });

  const PLAIN = {
    'a plain app': [{}, { kind: 'plain' }],
    'an app whose agent keeps to plain messages': [{ upgrade: 'none' }, {}],
  };
  for (const [what, [options, appOptions]] of Object.entries(PLAIN)) {
    for (const loaded of [true, false]) {
      test(`is reloaded, of ${what} that was ${loaded ? '' : 'not '}complete when the agent came: its call settles, each time`, async () => {
        await open({ ...options, loaded }, appOptions);
        for (let times = 1; times <= 2; times++) {
          await page.evaluate(() => {
            window.pending = window.client.call('hang');
          });
          const frame = page.frames()[1];
          await frame.waitForFunction(() => window.calls === 1);
          // It may have answered before it was complete.
          await frame.waitForFunction(() => document.readyState === 'complete');
          await frame.evaluate(() => void location.reload());
          const response = await page.evaluate(() => window.pending);
          assert.equal(response.error.code, 'DISCONNECTED');
          assert.equal(await page.evaluate(() => window.client.connected), false);
          await page.evaluate(() => window.client.reconnect());
          assert.equal(await page.evaluate(() => window.client.connected), true);
        }
        assert.equal(
          (await page.evaluate(() => window.client.call('echo', 'still there'))).data,
          'still there',
        );
      });
    }
  }

  /** What fires `load` in one engine or another, without a new document. */
  const SAME = {
    'sets its hash': (frame) => frame.evaluate(() => void (location.hash = 'a')),
    'follows a link to a place in itself': (frame) =>
      frame.evaluate(() => {
        document.body.innerHTML = '<a href="#b">b</a>';
        document.querySelector('a').click();
      }),
    'replaces its hash': (frame) => frame.evaluate(() => location.replace('#c')),
    ...Object.fromEntries(
      // Without a person's gesture, a step back in WebKit is one of the host page.
      (ENGINE === 'webkit' ? [] : ['?pushed', '#pushed']).map((address) => [
        `goes back from ${address}`,
        async (frame) => {
          await frame.evaluate((address) => history.pushState(1, '', address), address);
          await frame.evaluate(() => history.back());
          await frame.waitForFunction((address) => !location.href.endsWith(address), address);
        },
      ]),
    ),
    'gets a hash from its host': () =>
      page.evaluate(() => {
        window.iframe.src += '#e';
      }),
    'is led to a hash by its host': () =>
      page.evaluate(() => {
        window.iframe.contentWindow.location = window.iframe.src + '#f';
      }),
  };
  /** Which of them do: Chromium a quarter of a second later, so a test has to wait for it. */
  const WITH_LOAD = {
    chromium: /goes back|its host/,
    webkit: /hash|link/,
    firefox: /^$/,
  }[ENGINE];
  const expectLoad = () =>
    page.evaluate(() => {
      window.loaded = new Promise((resolve) =>
        window.iframe.addEventListener('load', () => resolve(true), { once: true }),
      );
    });
  /**
   * Resolves when the host has seen what comes of it.
   * @param {boolean} [withLoad] whether a `load` comes
   */
  const settled = (withLoad) =>
    page.evaluate(async (withLoad) => {
      if (withLoad) await window.loaded;
      for (let i = 0; i < 3; i++) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        await window.client.call('echo');
      }
    }, withLoad);
  const KINDS = {
    'an app': [{}, {}],
    'a plain app': [{}, { kind: 'plain' }],
  };
  for (const [kind, [options, appOptions]] of Object.entries(KINDS)) {
    // An app of ours is asked over its port. One change shows that: it fires `load` in two engines.
    const one = 'gets a hash from its host';
    const changes = kind === 'an app' ? { [one]: SAME[one] } : SAME;
    for (const [what, change] of Object.entries(changes)) {
      test(`stays where ${kind} ${what}: its call ends as its handler ends`, async () => {
        await open({ ...options, loaded: true }, appOptions);
        await page.evaluate(() => {
          window.lost = [];
          window.pending = window.client.call('held');
        });
        const frame = page.frames()[1];
        await frame.waitForFunction(() => window.calls === 1);
        await expectLoad();
        await change(frame);
        await settled(WITH_LOAD.test(what));
        await frame.evaluate(() => window.release('done'));
        const { data, error } = await page.evaluate(() => window.pending);
        assert.deepEqual([data, error], ['done', undefined]);
        assert.deepEqual(await page.evaluate(() => [window.client.connected, window.lost]), [
          true,
          [],
        ]);
      });
    }

    test(`comes after another one, of ${kind}: the session outlasts its own load`, async () => {
      await page.evaluate(
        async ([blank, src, origin, options]) => {
          const iframe = window.embed(blank);
          await new Promise((resolve) => (iframe.onload = resolve));
          window.lost = [];
          const loaded = new Promise((resolve) => (iframe.onload = resolve));
          iframe.src = src;
          window.client = await window.connectTo(iframe, { origin, ...options });
          window.pending = window.client.call('held');
          await loaded;
        },
        [
          `${site.appOrigin}/tests/browser/pages/blank.html`,
          site.appUrl(appOptions),
          site.appOrigin,
          options,
        ],
      );
      const frame = page.frames()[1];
      await frame.waitForFunction(() => window.calls === 1);
      await settled();
      await frame.evaluate(() => window.release('done'));
      assert.equal((await page.evaluate(() => window.pending)).data, 'done');
      assert.deepEqual(await page.evaluate(() => window.lost), []);
    });
  }

  test('writes itself anew: what goes through its port goes on', async () => {
    await open({ loaded: true });
    await page.evaluate(() => {
      window.lost = [];
      window.pending = window.client.call('held');
    });
    const frame = page.frames()[1];
    await frame.waitForFunction(() => window.calls === 1);
    await expectLoad();
    await frame.evaluate(() => {
      document.open();
      document.write('anew');
      document.close();
    });
    await settled(true);
    await frame.evaluate(() => window.release('done'));
    assert.equal((await page.evaluate(() => window.pending)).data, 'done');
  });

  test('of a plain app makes room for one that says nothing: its silence decides', async () => {
    await open({ loaded: true, limits: { probe: 500 } }, { kind: 'plain' });
    await page.evaluate(() => {
      window.pending = window.client.call('hang');
    });
    await page.frames()[1].waitForFunction(() => window.calls === 1);
    await page.evaluate((src) => {
      window.iframe.src = src;
    }, `${site.appOrigin}/tests/browser/pages/blank.html`);
    const { error } = await page.evaluate(() => window.pending);
    assert.equal(error.code, 'DISCONNECTED');
  });

  test('is closed by its app: its call says so, and the agent knows at once', async () => {
    await open();
    await page.evaluate(() => {
      window.pending = window.client.call('hang');
    });
    const frame = page.frames()[1];
    await frame.waitForFunction(() => window.calls === 1);
    await frame.evaluate(() => window.exposed.close());
    const { cancelled, error } = await page.evaluate(() => window.pending);
    assert.deepEqual([cancelled, error.message], [true, 'The app was closed']);
    await page.waitForFunction(() => window.lost?.length === 1);
    assert.equal(await page.evaluate(() => window.client.connected), false);
  });

  test('is closed by its app, and its agent keeps to plain messages: the next call says so', async () => {
    await open({ upgrade: 'none', loaded: true });
    await page.frames()[1].evaluate(() => window.exposed.close());
    const { error } = await page.evaluate(() => window.client.call('echo'));
    assert.equal(error.code, 'NOT_INITIALIZED');
    assert.equal(await page.evaluate(() => window.client.connected), false);
  });

  /**
   * Opens an app whose process is known, and its host's. They are found before there is a session:
   * what is kept busy so that it is found misses heartbeats.
   * @returns {Promise<{ frame: any, processes: Record<'app' | 'host', number> }>} with a call that
   *   hangs
   */
  const openProcesses = async (options, appOptions) => {
    await page.evaluate(async (src) => {
      const iframe = window.embed(src);
      await new Promise((resolve) => (iframe.onload = resolve));
    }, site.appUrl(appOptions));
    const [host, frame] = page.frames();
    const processes = {
      app: await processOf(site.browser, frame),
      host: await processOf(site.browser, host),
    };
    assert.notEqual(processes.app, processes.host);
    await page.evaluate(
      async (options) => {
        window.client = await window.connectTo(window.iframe, options);
        window.pending = window.client.call('hang');
      },
      { origin: site.appOrigin, ...options },
    );
    await frame.waitForFunction(() => window.calls === 1);
    return { frame, processes };
  };

  // WebKit keeps a frame in the process of its host: they die together. Firefox does not say whose
  // is whose.
  if (ENGINE === 'chromium') {
    test('is killed: the heartbeat notices', async () => {
      const { processes } = await openProcesses({ limits: { heartbeat: 3000 } });
      const host = await page.context().newCDPSession(page);
      process.kill(processes.app, 'SIGKILL');
      // Playwright gives up a page of which a frame has crashed; the page itself lives.
      const { result } = await host.send('Runtime.evaluate', {
        expression: 'window.pending.then(({ error }) => error.code)',
        awaitPromise: true,
      });
      await page.close();
      page = undefined;
      assert.equal(result.value, 'DISCONNECTED');
    });
  }

  // The same in WebKit: a page cannot stop alone there.
  if (ENGINE !== 'webkit') {
    const HEARTBEAT = 1500;
    /** More than two heartbeats. */
    const nap = () => new Promise((resolve) => setTimeout(resolve, 3 * HEARTBEAT));
    /** Resolves when whoever is awake has given up whoever is not. */
    const givenUp = {
      app: () => page.evaluate(() => window.pending.then(() => {})),
      // Of a page whose host sleeps a driver learns nothing, but its server does.
      host: async (asked) => {
        while (!asked()) await new Promise((resolve) => setTimeout(resolve, 20));
      },
    };
    /** Who sleeps, in the order in which they wake, and whether the client reconnects by itself. */
    const ORDERS = {
      'stands still, and its host does not': [['app'], false],
      'wakes after its host, which slept as well': [['host', 'app'], true],
      'wakes before its host, which slept as well': [['app', 'host'], true],
    };
    for (const [what, [wakes, reconnect]] of Object.entries(ORDERS)) {
      test(`${what}: its call ends, and the next one works (${reconnect ? 'reconnects by itself' : 'reconnect()'})`, async () => {
        const limits = { heartbeat: HEARTBEAT };
        const { frame, processes } = await openProcesses({ limits, reconnect }, { limits });
        await frame.evaluate(() => {
          const timer = setInterval(() => {
            if (!window.aborted) return;
            clearInterval(timer);
            // The strictest policy allows this.
            import('/aborted.js').catch(() => {});
          }, 20);
        });
        const asked = site.count('/aborted.js');
        for (const name of wakes) process.kill(processes[name], 'SIGSTOP');
        try {
          if (wakes.length > 1) {
            await nap();
            process.kill(processes[wakes[0]], 'SIGCONT');
          }
          await givenUp[wakes.at(-1)](asked);
        } finally {
          for (const name of wakes) process.kill(processes[name], 'SIGCONT');
        }
        const { success, error } = await page.evaluate(() => window.pending);
        assert.deepEqual([success, error.code], [false, 'DISCONNECTED']);
        if (!reconnect) await page.evaluate(() => window.client.reconnect());
        await page.waitForFunction(() => window.client.connected);
        const answer = await page.evaluate(() => window.client.call('echo', 'awake'));
        assert.equal(answer.data, 'awake');
        assert.equal(await frame.evaluate(() => window.exposed.sessions.length), 1);
      });
    }
  }

  test('lives on: in a new session its agent learns what became of a call of the old one', async () => {
    await open({ reconnect: true });
    const frame = page.frames()[1];
    const began = await page.evaluate(() => {
      window.pending = window.client.call('held', {}, { callId: 'mine' });
      return window.client.outcome('mine');
    });
    assert.deepEqual(began, { outcome: 'running' });
    // The agent begins anew, and its app does not know why.
    const lost = await page.evaluate(async () => {
      const reconnected = window.client.reconnect();
      const { error, metadata } = await window.pending;
      await reconnected;
      window.settled = window.client.outcome('mine', { settled: true });
      return [error.code, metadata.outcome, await window.client.outcome('mine')];
    });
    assert.deepEqual(lost, ['CANCELLED', 'unknown', { outcome: 'running' }]);
    await frame.evaluate(() => window.release('late'));
    assert.deepEqual(await page.evaluate(() => window.settled), { outcome: 'finished' });
  });

  test('gets another address: once that has loaded it answers, and so does what Back shows', async () => {
    await open();
    const told = await page.evaluate(
      async ([src, origin]) => {
        const { iframe } = window;
        const connectLoaded = async (change) => {
          const loaded = new Promise((resolve) =>
            iframe.addEventListener('load', resolve, { once: true }),
          );
          change();
          await loaded;
          const client = await window.connectTo(iframe, { origin });
          const { data } = await client.call('echo', 1);
          client.close();
          return data;
        };
        const next = await connectLoaded(() => (iframe.src = src));
        return [next, await connectLoaded(() => history.back())];
      },
      [site.appUrl({ restart: true }), site.appOrigin],
    );
    assert.deepEqual(told, [1, 1]);
  });

  test('is reloaded: the client reconnects, and nothing of the old session is heard', async () => {
    await open();
    const before = await page.evaluate(() => window.client.sessionId);
    await page.evaluate(() => {
      window.pending = window.client.call('hang', {}, { callId: 'same' });
    });
    await page.frames()[1].waitForFunction(() => window.calls === 1);
    await page.evaluate(() => void (window.iframe.src += ''));
    await page.evaluate(() => window.pending);
    await page.evaluate(() => window.client.reconnect());
    const after = await page.evaluate(() => window.client.sessionId);
    assert.notEqual(after, before);
    const response = await page.evaluate(() => window.client.call('echo', 7, { callId: 'same' }));
    assert.equal(response.data, 7);
  });

  for (const upgrade of ['frames', 'none']) {
    test(`is reloaded: a client that reconnects by itself makes the call again (${upgrade})`, async () => {
      await open({ upgrade, loaded: true, reconnect: true });
      const before = await page.evaluate(() => window.client.sessionId);
      await page.evaluate(() => {
        window.pending = window.client.call('once', {}, { retry: true });
      });
      await page.frames()[1].waitForFunction(() => window.calls === 1);
      await page.frames()[1].evaluate(() => void location.reload());
      const { data } = await page.evaluate(() => window.pending);
      assert.equal(data, 'done');
      assert.notEqual(await page.evaluate(() => window.client.sessionId), before);
    });
  }

  test('is the host: the handlers of the app are aborted', async () => {
    await open();
    await page.evaluate(() => void window.client.call('hang'));
    const frame = page.frames()[1];
    await frame.waitForFunction(() => window.calls === 1);
    await page.evaluate(() => window.client.close());
    await frame.waitForFunction(() => window.aborted?.length === 1);
  });

  test('does not listen yet: the handshake is sent again until it does', async () => {
    // Each attempt looks the frame's window up. The frame's script starts after several of them.
    await page.evaluate(() => {
      const { get } = Object.getOwnPropertyDescriptor(HTMLIFrameElement.prototype, 'contentWindow');
      window.looks = 0;
      Object.defineProperty(HTMLIFrameElement.prototype, 'contentWindow', {
        get() {
          window.looks++;
          return get.call(this);
        },
      });
    });
    const release = site.hold('/tests/browser/pages/app.html');
    try {
      const options = { src: site.appUrl({ late: true }), origin: site.appOrigin };
      await page.evaluate((o) => void (window.opening = window.open_(o)), options);
      await page.waitForFunction(() => window.iframe);
      const looks = await page.evaluate(() => window.looks);
      await page.waitForFunction((n) => window.looks > n + 3, looks);
    } finally {
      release();
    }
    assert.equal((await page.evaluate(() => window.opening)).port, true);
  });

  test('never answers: connect rejects and says what to look for', async () => {
    const message = await page.evaluate(async (origin) => {
      const iframe = window.embed(`${origin}/nothing.html`);
      try {
        await window.connect(iframe, { origin, timeout: 300, agent: { name: 'a', version: '1' } });
      } catch (error) {
        return `${error.name} ${error.code} ${error.message}`;
      }
    }, site.appOrigin);
    assert.match(message, /AbpError TIMEOUT The app did not answer/);
  });

  test('has another agent already: a second one is refused until the first has closed', async () => {
    await open({ upgrade: 'none' });
    const outcome = await page.evaluate(async (origin) => {
      const options = { origin, agent: { name: 'b', version: '1' }, upgrade: 'none' };
      const second = window.connect(window.iframe, { ...options, timeout: 300 }).then(
        () => 'connected',
        (error) => error.code,
      );
      const refused = await second;
      window.client.close();
      const third = await window.connect(window.iframe, options);
      return [refused, (await third.call('echo', 1)).data];
    }, site.appOrigin);
    assert.deepEqual(outcome, ['TIMEOUT', 1]);
  });
});

describe('an app that takes another agent in place of the first', () => {
  for (const upgrade of ['frames', 'port', 'none']) {
    test(`serves the second one of the same window, and what the first had running is cancelled (${upgrade})`, async () => {
      await open({ upgrade }, { restart: true });
      const outcome = await page.evaluate(
        async ([origin, upgrade]) => {
          const { client } = window;
          const running = client.call('hang');
          await client.call('echo');
          const options = { origin, agent: { name: 'b', version: '1' }, upgrade };
          const second = await window.connect(window.iframe, options);
          const { cancelled } = await running;
          return [cancelled, (await second.call('echo', 1)).data, second.features.port];
        },
        [site.appOrigin, upgrade],
      );
      assert.deepEqual(outcome, [true, 1, upgrade !== 'none']);
    });
  }
});

test('a second app of a page for an origin that the first serves is refused, until that is closed', async () => {
  await open();
  const outcome = await page.frames()[1].evaluate((origin) => {
    const again = () => window.expose_(origin);
    try {
      again();
    } catch (error) {
      window.exposed.close();
      again().close();
      return error.code;
    }
  }, site.hostOrigin);
  assert.equal(outcome, 'ALREADY_INITIALIZED');
});

test('a window that is given in place of its iframe is refused, and is not closed', async () => {
  await open();
  const codes = await page.evaluate(async (origin) => {
    const options = { origin, agent: { name: 'b', version: '1' } };
    const code = (target) => window.connect(target, options).catch((error) => error.code);
    return [await code(window.iframe.contentWindow), await code(window)];
  }, site.appOrigin);
  assert.deepEqual(codes, ['INVALID_PARAMS', 'INVALID_PARAMS']);
  assert.equal((await page.evaluate(() => window.client.call('echo', 1))).data, 1);
});

describe('the app’s console says who was refused', () => {
  const listen = (frame) =>
    frame.evaluate(() => {
      window.warned = [];
      console.warn = (...words) => window.warned.push(words.join(' '));
    });
  const refused = (origin) =>
    page.evaluate(
      (origin) =>
        window
          .connect(window.iframe, { origin, timeout: 300, agent: { name: 'b', version: '1' } })
          .catch((error) => error.code),
      origin,
    );

  test('an agent of an origin that is not among those given, once', async () => {
    const src = site.appUrl({ origins: ['https://another.example'] });
    await page.evaluate((src) => void window.embed(src), src);
    const frame = await frameAt(page, src);
    await frame.waitForFunction(() => window.exposed);
    await listen(frame);
    assert.equal(await refused(site.appOrigin), 'TIMEOUT');
    // What says it is loaded late, and the agent may have given up before its app was asked.
    await frame.waitForFunction(() => window.warned.length > 0);
    const warned = await frame.evaluate(() => window.warned);
    assert.equal(warned.length, 1);
    assert.ok(warned[0].includes(site.hostOrigin), warned[0]);
  });

  test('a second agent of a window whose first one has a session, once', async () => {
    await open();
    const frame = page.frames()[1];
    await listen(frame);
    assert.equal(await refused(site.appOrigin), 'TIMEOUT');
    // What says it is loaded late, and the agent may have given up before its app was asked.
    await frame.waitForFunction(() => window.warned.length > 0);
    const warned = await frame.evaluate(() => window.warned);
    assert.equal(warned.length, 1);
    assert.match(warned[0], /another agent in the same window has a session/);
  });
});

describe('data', () => {
  for (const upgrade of ['none', 'frames']) {
    test(`params and results are moved, not copied (${upgrade})`, async () => {
      await open({ upgrade });
      const outcome = await page.evaluate(async () => {
        const content = new ArrayBuffer(1 << 20);
        const sent = await window.client.call('size', { content }, { transfer: [content] });
        const received = await window.client.call('bytes', { size: 4096 });
        await window.client.call('moved', { size: 10 });
        return {
          left: content.byteLength,
          sent: sent.data,
          received: received.data.content.byteLength,
          mimeType: received.data.mimeType,
        };
      });
      assert.deepEqual(outcome, {
        left: 0,
        sent: 1 << 20,
        received: 4096,
        mimeType: 'application/octet-stream',
      });
      // The handler's own buffer is gone, too.
      assert.equal(await page.frames()[1].evaluate(() => window.pixels.byteLength), 0);
    });

    test(`what cannot be cloned fails its own call and no other (${upgrade})`, async () => {
      await open({ upgrade });
      const outcome = await page.evaluate(async () => {
        const cyclic = {};
        cyclic.self = cyclic;
        const all = await Promise.all([
          window.client.call('echo', 1),
          window.client.call('echo', { f() {} }),
          window.client.call('unsendable'),
          window.client.call('echo', {
            get x() {
              throw new Error('a getter');
            },
          }),
          window.client.call('echo', cyclic),
          window.client.call('echo', 2),
        ]);
        return all.map(({ success, data, error }) =>
          success ? (data?.self === data ? 'cyclic' : data) : error.code,
        );
      });
      assert.deepEqual(outcome.slice(0, 4).concat(outcome.slice(5)), [
        1,
        'INVALID_PARAMS',
        'OPERATION_FAILED',
        'INVALID_PARAMS',
        2,
      ]);
    });
  }
});

describe('window.abp', () => {
  test('is the whole interface, and calls through it can be cancelled', async () => {
    await page.goto(site.appUrl({}));
    await page.waitForFunction(() => window.abp);
    const outcome = await page.evaluate(async () => {
      const { abp } = window;
      const early = await abp.call('echo', 1);
      const features = { notifications: true, progress: true, elicitation: false };
      const init = { agent: { name: 'x', version: '1' }, protocolVersion: '0.1', features };
      const session = await abp.initialize(init);
      const again = await abp.initialize(init).catch((error) => error.code);
      const controller = new AbortController();
      const call = abp.call('hang', {}, { callId: 'c', signal: controller.signal });
      const positional = abp.call('hang', {}, { callId: 'p' });
      controller.abort('no');
      const answers = [
        await abp.cancel('p', 'why'),
        await abp.cancel({ callId: 'p' }),
        await abp.cancel('unknown'),
      ];
      const result = {
        early: early.error.code,
        again,
        session: typeof session.sessionId,
        initialized: abp.initialized,
        cancelled: (await call).cancelled,
        positional: (await positional).error.code,
        answers,
        list: (await abp.listCapabilities()).some(({ name }) => name === 'echo'),
        supports: await abp.supports('nothing'),
        echo: (await abp.call('echo', 5)).data,
        alias: typeof window.__abp_cancel,
      };
      await abp.shutdown();
      return { ...result, after: (await abp.call('echo', 1)).error.code };
    });
    assert.deepEqual(outcome, {
      early: 'NOT_INITIALIZED',
      again: 'ALREADY_INITIALIZED',
      session: 'string',
      initialized: true,
      cancelled: true,
      positional: 'CANCELLED',
      answers: [
        { callId: 'p', cancelled: true },
        { callId: 'p', cancelled: true },
        { callId: 'unknown', cancelled: false, reason: 'Operation not found' },
      ],
      list: true,
      supports: { supported: false, available: false, reason: 'Unknown capability' },
      echo: 5,
      alias: 'function',
      after: 'NOT_INITIALIZED',
    });
  });

  test('loads what answers with the first question, and keeps the order of what is asked until then', async () => {
    await page.goto(site.appUrl({}));
    await page.waitForFunction(() => window.abp);
    const outcome = await page.evaluate(async () => {
      const { abp } = window;
      const loaded = () =>
        performance
          .getEntriesByType('resource')
          .some(({ name }) => /\/local-agent[^/]*\.js$/.test(name));
      const before = [loaded(), abp.initialized, abp.sessionId];
      const init = { agent: { name: 'x', version: '1' }, protocolVersion: '0.1', features: {} };
      const answers = [abp.call('echo', 1), abp.initialize(init), abp.call('echo', 2)];
      const [early, , result] = await Promise.all(answers);
      return { before, early: early.error.code, data: result.data, after: loaded() };
    });
    const before = [false, false, null];
    assert.deepEqual(outcome, { before, early: 'NOT_INITIALIZED', data: 2, after: true });
  });
});

test('a page that has another window.abp keeps it', async () => {
  await page.goto(site.appUrl({ taken: true }));
  await page.waitForFunction(() => window.exposed);
  assert.deepEqual(await page.evaluate(() => Object.keys(window.abp)), ['notify']);
  assert.equal(await page.evaluate(() => typeof window.exposed.abp.initialize), 'function');
});

test('a page that forbids WebAssembly gets the same core as JavaScript', async () => {
  // The proof that this run is about what it says.
  await open();
  for (const realm of [page, page.frames()[1]]) {
    assert.equal(await realm.evaluate(() => window.core), CORE);
  }
});
