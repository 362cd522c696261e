// The errors of the first hour that only a browser can give: who reads them knows what happened,
// why, and what to do.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { ENGINE, frameAt, sites } from '../support/browser.js';

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

/**
 * What connect rejects with. The frame has loaded before, unless the test says otherwise.
 * @param {{ src?: string, origin?: string, attributes?: object, timeout?: number }} options
 */
const rejection = (options) =>
  page.evaluate(
    async ({ src, origin, attributes, timeout = 100 }) => {
      const iframe = window.embed(src ?? 'about:blank', attributes);
      if (src) await new Promise((resolve) => (iframe.onload = resolve));
      const agent = { name: 'a', version: '1' };
      return window.connect(iframe, { origin, timeout, agent }).then(
        () => 'connected',
        ({ code, message }) => `${code}: ${message}`,
      );
    },
    { origin: site.appOrigin, ...options },
  );

/**
 * Asks with ever more time, on whatever machine, until what is said begins so, or there has been
 * time enough.
 */
async function withTimeFor(expected, said) {
  for (let timeout = 250; ; timeout *= 2) {
    const message = await said(timeout);
    if (expected.test(message) || timeout > 20_000) return message;
  }
}

const nothing = () => `${site.appOrigin}/nothing.html`;
const blank = (origin, said = '') =>
  `${origin}/tests/browser/pages/blank.html${said && `#${encodeURIComponent(said)}`}`;

describe('the console says before time is up, without any limit of time', () => {
  const warning = ({ src, origin }) =>
    page.evaluate(
      ([src, origin]) => {
        const said = new Promise((resolve) => {
          const { warn } = console;
          console.warn = (text) => {
            if (!String(text).includes('has not answered yet')) return warn(text);
            console.warn = warn;
            resolve(text);
          };
        });
        const iframe = window.embed(src);
        if (!src) iframe.removeAttribute('src');
        void window.connect(iframe, { origin, timeout: 0, agent: { name: 'a', version: '1' } });
        return said;
      },
      [src, origin],
    );

  test('that the iframe’s src is of another origin than was named', async () => {
    const text = await warning({ src: nothing(), origin: 'http://writer.localhost' });
    assert.match(text, /^abp-bridge: .*the iframe's src is at .*#wrong-origin\)$/);
  });

  test('that the iframe is empty', async () => {
    const text = await warning({ src: '', origin: site.appOrigin });
    assert.match(text, /the iframe is empty.*#frame-not-found\)$/);
  });

  // The others report no such thing to the page.
  if (ENGINE === 'chromium') {
    test('that the page’s own policy blocks the frame', async () => {
      await page.evaluate(() => {
        const policy = document.createElement('meta');
        policy.httpEquiv = 'Content-Security-Policy';
        policy.content = "frame-src 'self'";
        document.head.append(policy);
      });
      const text = await warning({ src: site.appUrl(), origin: site.appOrigin });
      assert.ok(
        text.includes(`Content Security Policy blocks the frame: add ${site.appOrigin}`),
        text,
      );
    });
  }
});

describe('connect says', () => {
  test('that the iframe’s src is of another origin than was named', async () => {
    const message = await rejection({ src: nothing(), origin: 'http://writer.localhost' });
    assert.match(message, /^TIMEOUT: .*within 100 ms: the iframe's src is at/);
    assert.ok(
      message.includes(
        `at ${site.appOrigin}, but connect was given origin: http://writer.localhost`,
      ),
      message,
    );
    assert.match(message, /#wrong-origin\)$/);
  });

  test('from where the frame speaks, if that is another origin', async () => {
    // As after a redirect, nothing but what it says tells where it is.
    const said = JSON.stringify([{ type: 'hello' }]);
    const src = blank(site.appOrigin, said);
    const message = await withTimeFor(/messages come from/, (timeout) =>
      page.evaluate(
        ([src, origin, timeout]) => {
          const agent = { name: 'a', version: '1' };
          const connecting = window.connect(window.embed(src), { origin, timeout, agent });
          return connecting.catch((error) => error.message);
        },
        [src, 'http://writer.localhost', timeout],
      ),
    );
    assert.ok(
      message.includes(
        `the iframe's messages come from ${site.appOrigin}, not from http://writer.localhost (docs/errors.md#wrong-origin)`,
      ),
      message,
    );
  });

  test('what a frame of its own origin shows, if that is not what was named', async () => {
    const src = blank(site.hostOrigin);
    const message = await rejection({ src });
    assert.ok(message.includes(`the iframe shows ${src}, which is not at`), message);
    assert.match(message, /#wrong-origin\)$/);
  });

  test('that the server answered with 404, where that can be seen', async () => {
    const src = `${site.hostOrigin}/nothing.html`;
    const message = await rejection({ src, origin: site.hostOrigin });
    const seen = await page.evaluate(
      () => 'responseStatus' in PerformanceResourceTiming.prototype, // not in every WebKit
    );
    if (!seen) return assert.match(message, /#no-answer\)$/);
    assert.ok(message.includes(`the server answered ${src} with status 404`), message);
    assert.match(message, /#frame-not-found\)$/);
  });

  test('that the iframe is empty', async () => {
    const message = await rejection({});
    assert.match(message, /the iframe is empty.*#frame-not-found\)$/);
  });

  for (const [what, sandbox, origin, lacking] of [
    ['a sandbox without an origin', 'allow-scripts', undefined, 'allow-same-origin'],
    ['a sandbox without scripts', '', undefined, 'allow-scripts'],
    ['a sandbox without scripts, whose origin is null', 'allow-forms', 'null', 'allow-scripts'],
  ]) {
    test(`what is lacking in ${what}, at once`, async () => {
      const named = origin && { origin };
      const message = await rejection({ attributes: { sandbox }, timeout: 0, ...named });
      const start = `INVALID_PARAMS: The iframe's sandbox lacks ${lacking}`;
      assert.ok(message.startsWith(start), message);
      assert.match(message, /#sandbox\)$/);
    });
  }

  test('that a frame without a sandbox has an origin', async () => {
    const message = await rejection({ src: nothing(), origin: 'null' });
    assert.ok(message.includes(`has no sandbox: its origin is ${site.appOrigin}`), message);
  });

  for (const [what, src] of [
    ['does not exist', nothing],
    ['does not call expose', () => blank(site.appOrigin)],
    ['serves other origins', () => site.appUrl({ origins: ['https://another.example'] })],
  ]) {
    test(`what an app must do, where it ${what}`, async () => {
      const message = await rejection({ src: src() });
      assert.ok(
        message.includes(
          `must load from ${site.appOrigin}, and call expose(app, { origins: ["${site.hostOrigin}"] })`,
        ),
        message,
      );
      assert.match(message, /^TIMEOUT: .*#no-answer\)$/);
    });
  }

  test('that another client of the page is connected already', async () => {
    await open({ upgrade: 'none' });
    const message = await withTimeFor(/^ALREADY/, (timeout) =>
      page.evaluate(
        ([origin, timeout]) =>
          window
            .connect(window.iframe, { origin, timeout, agent: { name: 'b', version: '1' } })
            .catch((error) => `${error.cause?.code} ${error.message}`),
        [site.appOrigin, timeout],
      ),
    );
    assert.match(message, /^ALREADY_INITIALIZED .*it refused, with ALREADY_INITIALIZED/);
    assert.match(message, /#already-connected\)$/);
  });

  test('that the script of a worker did not load, of the wrong MIME type or not there', async () => {
    for (const path of ['/tests/browser/pages/blank.html', '/nothing.js']) {
      const message = await page.evaluate(async (path) => {
        const worker = new Worker(path, { type: 'module' });
        const agent = { name: 'a', version: '1' };
        return window.connect(worker, { agent }).catch((e) => `${e.code}: ${e.message}`);
      }, path);
      assert.match(message, /^DISCONNECTED: The worker's script did not load.*not-load\)$/, path);
    }
  });
});

describe('the app’s author reads', () => {
  test('whose agent was refused, and the line to write', async () => {
    const src = site.appUrl({ origins: ['https://another.example'] });
    await page.evaluate((src) => void window.embed(src), src);
    const frame = await frameAt(page, src);
    await frame.waitForFunction(() => window.exposed);
    await frame.evaluate(() => {
      window.warned = [];
      console.warn = (...words) => window.warned.push(words.join(' '));
    });
    await page.evaluate((origin) => {
      const agent = { name: 'a', version: '1' };
      window.connecting = window.connect(window.iframe, { origin, agent });
      window.connecting.catch(() => {});
    }, site.appOrigin);
    await frame.waitForFunction(() => window.warned.length > 0);
    const [warned] = await frame.evaluate(() => window.warned);
    const line = `expose(app, { origins: ["https://another.example","${site.hostOrigin}"] })`;
    assert.ok(warned.includes(line), warned);
    assert.match(warned, /#refused-origin\)$/);
  });

  test('that the page serves an origin already', async () => {
    await open();
    const message = await page.frames()[1].evaluate((origin) => {
      try {
        window.expose_(origin);
      } catch (error) {
        return `${error.code}: ${error.message}`;
      }
    }, site.hostOrigin);
    assert.ok(
      message.startsWith(`ALREADY_INITIALIZED: Another app in this page already serves`),
      message,
    );
    assert.match(message, /#exposed-twice\)$/);
  });

  test('what an origin is, when it gives a wildcard', async () => {
    await open();
    const message = await page.frames()[1].evaluate(() => {
      try {
        window.expose_('*');
      } catch (error) {
        return `${error.code}: ${error.message}`;
      }
    });
    assert.match(message, /^INVALID_PARAMS: "\*" is not an origin.*#not-an-origin\)$/);
  });
});

describe('a handler that returns', () => {
  for (const upgrade of ['none', 'frames']) {
    test(`a Response of fetch has failed, and says what cannot be sent (${upgrade})`, async () => {
      await open({ upgrade });
      const { error } = await page.evaluate(() => window.client.call('fetches'));
      assert.equal(error.code, 'OPERATION_FAILED');
      assert.match(error.message, /^The result cannot be sent: data\.answer \(Response\): /);
      assert.match(error.message, /#what-cannot-be-sent\)$/);
    });

    test(`nothing has succeeded (${upgrade})`, async () => {
      await open({ upgrade });
      const response = await page.evaluate(async () => {
        const { success, data } = await window.client.call('returns.nothing');
        return { success, isUndefined: data === undefined };
      });
      assert.deepEqual(response, { success: true, isUndefined: true });
    });
  }
});

test('a signal of another window cancels like any other', async () => {
  await open();
  const { code, message } = await page.evaluate(async () => {
    const other = document.createElement('iframe');
    document.body.append(other);
    const controller = new other.contentWindow.AbortController();
    const { signal } = controller;
    const pending = window.client.call('hang', {}, { signal });
    controller.abort('the other window says so');
    const { error } = await pending;
    const early = await window.client.call('echo', 1, { signal });
    if (!early.cancelled) throw new Error('an aborted signal was not read');
    other.remove();
    return error;
  });
  assert.deepEqual([code, message], ['CANCELLED', 'the other window says so']);
});

test('normal use writes nothing to any console, not even while the frame loads', async () => {
  const said = [];
  const told = (message) => said.push(message.text());
  // What the browser itself writes can be heard in Chromium.
  if (ENGINE === 'chromium') page.on('console', told);
  await page.evaluate(() => {
    window.told = [];
    for (const method of ['log', 'info', 'warn', 'error'])
      console[method] = (...words) => window.told.push(words.join(' '));
  });
  const release = site.hold('/tests/browser/pages/app.html');
  try {
    await page.evaluate(() => {
      // Each attempt looks the frame's window up.
      const { get } = Object.getOwnPropertyDescriptor(HTMLIFrameElement.prototype, 'contentWindow');
      window.looks = 0;
      Object.defineProperty(HTMLIFrameElement.prototype, 'contentWindow', {
        get() {
          window.looks++;
          return get.call(this);
        },
      });
    });
    const options = { src: site.appUrl({ quiet: true }), origin: site.appOrigin };
    await page.evaluate((o) => void (window.opening = window.open_(o)), options);
    await page.waitForFunction(() => window.iframe);
    const looks = await page.evaluate(() => window.looks);
    await page.waitForFunction((n) => window.looks > n + 2, looks);
  } finally {
    release();
  }
  assert.equal((await page.evaluate(() => window.opening)).port, true);
  const outcome = await page.evaluate(async () => {
    const controller = new AbortController();
    const hanging = window.client.call('hang', {}, { signal: controller.signal });
    const echo = await window.client.call('echo', 1);
    controller.abort('enough');
    const { cancelled } = await hanging;
    window.client.close();
    return [echo.data, cancelled, window.told];
  });
  assert.deepEqual(outcome, [1, true, []]);
  if (ENGINE === 'chromium') page.off('console', told);
  assert.deepEqual(said, []);
});
