// What a page lives through: caches, freezing, moves, many frames, and endings of every kind.
// Afterwards nothing is pending, and nothing is left behind.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { ARGS, ENGINE, executablePath, renderers, sites } from '../support/browser.js';

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

const open = (options = {}) =>
  page.evaluate((o) => window.open_(o), {
    src: site.appUrl({}),
    origin: site.appOrigin,
    ...options,
  });
const hang = () =>
  page.evaluate(() => {
    window.pending = window.client.call('hang');
  });

test('the page goes into the back-forward cache with calls in flight, and comes back', async () => {
  await open();
  await page.evaluate(() => {
    window.all = Array.from({ length: 10 }, () => window.client.call('hang'));
    addEventListener('pageshow', ({ persisted }) => (window.persisted = persisted));
  });
  await page.frames()[1].waitForFunction(() => window.calls === 10);
  await page.goto(site.appUrl({}));
  await (ENGINE === 'chromium' ? page.goBack({ waitUntil: 'commit' }) : page.back());
  // Where the engine kept the page, its calls go on; where it did not, it is a new one and has
  // none.
  if (!(await page.evaluate(() => window.persisted))) {
    assert.equal(await page.evaluate(() => window.all), undefined);
    await page.waitForFunction(() => window.isReady);
    await open();
    assert.equal((await page.evaluate(() => window.client.call('echo', 1))).data, 1);
    return;
  }
  const outcome = await page.evaluate(async () => {
    const echo = await window.client.call('echo', 'again');
    const early = await Promise.race([...window.all, Promise.resolve('pending')]);
    window.client.close();
    return {
      echo: echo.data,
      early,
      ends: (await Promise.all(window.all)).map((r) => r.cancelled),
    };
  });
  assert.deepEqual(outcome, { echo: 'again', early: 'pending', ends: Array(10).fill(true) });
});

test('a frame that is put elsewhere is a new document: its call settles, and a new session begins', async () => {
  await open();
  await hang();
  await page.frames()[1].waitForFunction(() => window.calls === 1);
  const outcome = await page.evaluate(async () => {
    const before = window.client.sessionId;
    document.body.append(document.createElement('div'));
    document.querySelector('div').append(window.iframe);
    const { error } = await window.pending;
    await window.client.reconnect();
    const echo = await window.client.call('echo', 1);
    return [error.code, echo.data, window.client.sessionId !== before];
  });
  assert.deepEqual(outcome, ['DISCONNECTED', 1, true]);
});

test('a frame that is moved with its state keeps its session', async () => {
  await open();
  await hang();
  await page.frames()[1].waitForFunction(() => window.calls === 1);
  const outcome = await page.evaluate(async () => {
    const div = document.body.appendChild(document.createElement('div'));
    if (!div.moveBefore) return 'no moveBefore';
    div.moveBefore(window.iframe, null);
    const echo = await window.client.call('echo', 1);
    const state = await Promise.race([window.pending, Promise.resolve('pending')]);
    return [echo.data, state];
  });
  // WebKit has no moveBefore.
  assert.deepEqual(outcome, ENGINE === 'webkit' ? 'no moveBefore' : [1, 'pending']);
});

if (ENGINE === 'chromium') {
  // Firefox and WebKit do not say which processes are a page's.
  test('both sides stand still for many heartbeats, as in a machine that sleeps: the session lasts', async () => {
    await open({ limits: { heartbeat: 2000 } });
    await hang();
    await page.frames()[1].waitForFunction(() => window.calls === 1);
    const processes = await renderers(site.browser);
    const tell = (signal) => {
      for (const { id } of processes) {
        try {
          process.kill(id, signal);
        } catch {
          // One that is spare may be gone before it is told.
        }
      }
    };
    tell('SIGSTOP');
    // What stands still tells nothing to wait for.
    await new Promise((resolve) => setTimeout(resolve, 7000));
    tell('SIGCONT');
    const outcome = await page.evaluate(async () => {
      const echo = await window.client.call('echo', 1);
      const state = await Promise.race([window.pending, Promise.resolve('pending')]);
      return [echo.data, state];
    });
    assert.deepEqual(outcome, [1, 'pending']);
  });

  test('the page is hidden and frozen for many heartbeats, and comes back: the session lasts', async () => {
    // Playwright keeps each page visible, and what is visible is never frozen.
    const browser = await puppeteer.launch({ executablePath, args: ARGS });
    try {
      const [page] = await browser.pages();
      await page.goto(site.hostUrl);
      await page.waitForFunction('isReady');
      const options = { src: site.appUrl({}), origin: site.appOrigin, limits: { heartbeat: 2000 } };
      await page.evaluate(async (options) => {
        window.seen = [];
        for (const type of ['freeze', 'resume'])
          document.addEventListener(type, () => window.seen.push(type));
        await window.open_(options);
        window.pending = window.client.call('hang');
        await window.client.call('echo', 'is running');
      }, options);
      const devtools = await page.createCDPSession();
      const become = (state) => devtools.send('Page.setWebLifecycleState', { state });
      await become('frozen');
      await new Promise((resolve) => setTimeout(resolve, 7000)); // as above
      await become('active');
      const outcome = await page.evaluate(async () => {
        const echo = await window.client.call('echo', 1);
        const state = await Promise.race([window.pending, Promise.resolve('pending')]);
        return [window.seen, echo.data, state];
      });
      assert.deepEqual(outcome, [['freeze', 'resume'], 1, 'pending']);
    } finally {
      await browser.close();
    }
  });
}

test('a session with nothing to say outlives its heartbeats', async () => {
  await open({ upgrade: 'port', limits: { heartbeat: 2000 } });
  const outcome = await page.evaluate(async () => {
    // Each ping is a post of ours; what settles first is the fourth, or the loss.
    const { postMessage } = MessagePort.prototype;
    let pings = 0;
    const fourth = new Promise((resolve) => {
      MessagePort.prototype.postMessage = function (message, ...more) {
        if (message.type === 'bridge/ping' && ++pings === 4) resolve('four');
        return postMessage.call(this, message, ...more);
      };
    });
    const lost = new Promise((resolve) => (window.client.onDisconnect = () => resolve('lost')));
    return [await Promise.race([fourth, lost]), (await window.client.call('echo', 1)).data];
  });
  assert.deepEqual(outcome, ['four', 1]);
});

const FRAMES = 20;
test(`${FRAMES} frames at once: what becomes of some costs the others nothing`, async () => {
  const outcome = await page.evaluate(
    async ([src, origin, count]) => {
      const frames = Array.from({ length: count }, (_, i) => {
        const iframe = document.createElement('iframe');
        iframe.src = src.replace('SERIAL', i);
        document.body.append(iframe);
        return iframe;
      });
      const options = { origin, agent: { name: 'many', version: '1' }, timeout: 600_000 };
      const clients = await Promise.all(frames.map((iframe) => window.connect(iframe, options)));
      const calls = clients.map((client) => client.call('hang', {}, { callId: 'same' }));
      const ends = [
        () => frames[0].remove(),
        () => (frames[1].src = 'about:blank'),
        () => clients[2].close(),
        () => void clients[3].cancel('same'),
      ];
      for (const end of ends) end();
      const ended = (await Promise.all(calls.slice(0, 4))).map(({ error }) => error.code);
      const others = clients.slice(4);
      const echoes = await Promise.all(others.map((client, i) => client.call('echo', i)));
      const pending = await Promise.all(
        calls.slice(4).map((call) => Promise.race([call, Promise.resolve('pending')])),
      );
      for (const client of others) client.close();
      for (const iframe of frames) iframe.remove();
      return {
        ended,
        answered: echoes.filter(({ data }, i) => data === i).length,
        pending: pending.filter((state) => state === 'pending').length,
      };
    },
    [site.appUrl({ serial: 'SERIAL' }), site.appOrigin, FRAMES],
  );
  assert.deepEqual(outcome, {
    ended: ['DISCONNECTED', 'DISCONNECTED', 'CANCELLED', 'CANCELLED'],
    answered: FRAMES - 4,
    pending: FRAMES - 4,
  });
});

describe('what is left behind', () => {
  const ENDINGS = {
    'the agent closes': () => window.client.close(),
    'the frame is removed': () => window.iframe.remove(),
    'the frame is replaced': () => void (window.iframe.src = 'about:blank'),
  };
  for (const [what, end] of Object.entries(ENDINGS)) {
    for (const upgrade of ['none', 'frames']) {
      test(`${what}: no listener, timer or port (${upgrade})`, async () => {
        await page.evaluate(() => window.watchHeld());
        await open({ upgrade });
        const during = await page.evaluate(async () => {
          const { signal } = new AbortController();
          window.calls = [
            window.client.call('hang', {}, { signal }),
            window.client.call('hang', {}, { signal, timeout: 60_000 }),
            window.client.call('echo', 1, { signal }),
          ];
          await window.calls[2];
          return { ...window.held };
        });
        assert.ok(during.listeners > 3 && during.timers > 0, JSON.stringify(during));
        assert.equal(during.ports, upgrade === 'none' ? 0 : 1);
        await page.evaluate(end);
        await page.evaluate(async () => void (await Promise.all(window.calls)));
        assert.deepEqual(await page.evaluate(() => window.held), {
          listeners: 0,
          timers: 0,
          ports: 0,
        });
      });
    }
  }
});
