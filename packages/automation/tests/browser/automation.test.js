// An agent in Node and apps in pages: Puppeteer and Playwright, our app and plain ones, in
// Chromium.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import puppeteer from 'puppeteer-core';
import { connectPage } from '../../src/index.js';
import { LONG, launch, patient, serve } from '../../../../tests/support/browser.js';
import { AgentDriver } from '../../../../tests/support/drivers.js';
import { sections } from '../../../../tests/support/sections.js';
import { Log, play } from '../../../../tests/support/transcript.js';

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-sync',
];
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** What differs between the two libraries, in these tests as in the transport. */
const LIBRARIES = {
  puppeteer: {
    launch: async (more) =>
      patient(
        await puppeteer.launch({
          executablePath,
          timeout: LONG,
          protocolTimeout: 2 * LONG,
          args: [...ARGS, '--site-per-process'],
          ...more,
        }),
      ),
    devtools: (page) => page.createCDPSession(),
    back: (page) => page.goBack({ waitUntil: 'domcontentloaded' }),
    goto: (page, url) => page.goto(url, { waitUntil: 'domcontentloaded' }),
  },
  playwright: {
    launch: () => launch(),
    devtools: (page) => page.context().newCDPSession(page),
    // A document that was kept does not load again.
    back: (page) => page.goBack({ waitUntil: 'commit' }),
    goto: (page, url) => page.goto(url, { waitUntil: 'domcontentloaded' }),
  },
};
const agent = { name: 'test', version: '1' };

let server, origin;
before(async () => {
  server = await serve();
  origin = `http://localhost:${server.port}`;
});
after(() => server.close());
const address = (options = {}, host = origin) =>
  `${host}/tests/browser/pages/own.html?${encodeURIComponent(JSON.stringify(options))}`;

/**
 * What the app was answered, whether it returns the data alone or, as the plain one does, the
 * response.
 */
const answerIn = ({ data }) => data.data ?? data;

for (const [name, library] of Object.entries(LIBRARIES)) {
  describe(name, () => {
    let browser, page;
    const clients = [];
    before(async () => {
      browser = await library.launch();
      page = await browser.newPage();
    });
    after(() => browser.close());
    afterEach(() => {
      for (const client of clients.splice(0)) client.close();
    });

    const goto = (options, on = page) => library.goto(on, address(options));
    async function connect(options = {}, target = page) {
      const client = await connectPage(target, { agent, timeout: LONG, ...options });
      clients.push(client);
      return client;
    }
    /** A page with an app, and a client of it. */
    async function open(app, options) {
      await goto(app);
      return connect(options);
    }
    /** @param {(...args: any[]) => boolean} condition in the page */
    const until = (condition, on = page) => on.waitForFunction(condition, { polling: 20 });

    for (const kind of ['ours', 'plain']) {
      describe(`the transcripts, ${kind === 'ours' ? 'our app' : 'a plain app'}`, () => {
        let log;
        let own;
        before(async () => {
          own = await browser.newPage();
          await own.exposeFunction('record', (line) => log.add(line));
        });
        after(() => own.close());
        for (const section of sections().filter(({ ours }) => kind === 'ours' || !ours)) {
          test(section.title, async () => {
            await library.goto(own, address({ kind, limits: section.limits.app }));
            log = new Log();
            const driver = new AgentDriver((line) => log.add(line));
            driver.client = await connect({ limits: section.limits.agent }, own);
            const { seen, expected } = await play(section, {
              log,
              do(side, ...words) {
                if (side === 'agent') void driver.do(...words);
                else return own.evaluate((w) => void window.driver.do(...w), words);
              },
              settle: async () => void (await driver.client.call('barrier')),
            });
            assert.deepEqual(seen, expected);
          });
        }
      });
    }

    describe('the session', () => {
      for (const kind of ['ours', 'plain']) {
        test(`says who the app is and what it can do (${kind})`, async () => {
          const client = await open({ kind });
          assert.equal(client.connected, true);
          assert.equal(client.app.version, '1');
          assert.match(client.sessionId, /./);
          const list = await client.listCapabilities();
          assert.equal(list.find((c) => c.name === 'echo').available, true);
          assert.equal((await client.describeCapability('echo')).name, 'echo');
          assert.equal((await client.supports('echo')).available, true);
          assert.equal((await client.supports('nothing')).supported, false);
          assert.deepEqual(client.features, {
            notifications: true,
            progress: true,
            elicitation: false,
            dynamicCapabilities: true,
            port: false,
            frames: false,
            liveness: false,
            streams: kind === 'ours',
            outcomes: kind === 'ours',
            text: false,
          });
          assert.deepEqual((await client.call('echo', { a: 1 })).data, { a: 1 });
        });

        if (kind === 'ours')
          test('streams, and leaving the loop cancels the call', async () => {
            const client = await open({ kind });
            const stream = client.stream('numbers', { to: 300 });
            const chunks = [];
            for await (const chunk of stream) chunks.push(chunk);
            assert.deepEqual(chunks, [...Array(300).keys()]);
            assert.equal((await stream.response).data, 'counted');
            for await (const chunk of client.stream('numbers', { to: Infinity }))
              if (chunk === 100) break;
            await until(() => window.unwound === 2);
          });

        test(`answers the app's questions (${kind})`, async () => {
          const client = await open(
            { kind },
            { onElicitation: ({ method, params }) => ({ method, ...params }) },
          );
          const answer = answerIn(await client.call('ask', { prompt: 'name?' }));
          assert.deepEqual(answer, { method: 'elicitation/input', prompt: 'name?' });
        });

        test(`takes no questions unless it says so (${kind})`, async () => {
          const client = await open({ kind });
          const { data, error = data.error } = await client.call('ask', {});
          assert.equal(error.code, 'NOT_SUPPORTED');
        });

        test(`ends by close: the app has been shut down, and takes another (${kind})`, async () => {
          await goto({ kind });
          const listeners = () =>
            ['close', 'crash', 'error'].map((event) => page.listenerCount(event));
          const before = listeners();
          const client = await connect();
          const pending = client.call('hang');
          await until(() => window.started === 1);
          client.close();
          assert.equal((await pending).cancelled, true);
          await until(() => window.aborted.length === 1 && !window.abp.initialized);
          await until(() => !Object.keys(window).some((key) => /^__abp(On|_(?!cancel))/.test(key)));
          // The page is watched until it has heard of the end.
          while (listeners().some((count, i) => count > before[i])) await page.evaluate(() => {});
          const next = await connect();
          assert.equal((await next.call('echo', 2)).data, 2);
        });

        test(`reconnect begins a new one on the same page (${kind})`, async () => {
          const client = await open({ kind });
          const { sessionId } = client;
          await client.reconnect();
          assert.notEqual(client.sessionId, sessionId);
          assert.equal((await client.call('echo', 3)).data, 3);
        });
      }

      test('leaves no listener at the page behind', async () => {
        const own = await browser.newPage();
        await goto({}, own);
        const listeners = () =>
          ['close', 'crash', 'error'].map((event) => own.listenerCount(event));
        const before = listeners();
        const client = await connect({}, own);
        await client.reconnect();
        await client.reconnect();
        assert.deepEqual(
          listeners(),
          before.map((count) => count + 1),
        );
        await own.close();
      });

      test('a slow app is initialized once, however often it is asked', async () => {
        await goto({ kind: 'plain' });
        await page.evaluate(() => {
          const { initialize } = window.abp;
          window.initialized = 0;
          window.abp.initialize = async (params) => {
            window.initialized++;
            await new Promise((resolve) => setTimeout(resolve, 1000));
            return initialize(params);
          };
        });
        const client = await connect();
        assert.equal((await client.call('echo', 1)).data, 1);
        assert.equal(await page.evaluate(() => window.initialized), 1);
      });

      test('reconnect waits until the app has shut down', async () => {
        const client = await open({ kind: 'plain' });
        await page.evaluate(() => {
          const { shutdown, initialize } = window.abp;
          window.order = [];
          window.abp.shutdown = async () => {
            await new Promise((resolve) => setTimeout(resolve, 100));
            window.order.push('shutdown');
            return shutdown();
          };
          window.abp.initialize = (params) => {
            window.order.push('initialize');
            return initialize(params);
          };
        });
        await client.reconnect();
        assert.deepEqual(await page.evaluate(() => window.order), ['shutdown', 'initialize']);
        assert.equal((await client.call('echo', 1)).data, 1);
      });

      test('capabilities that change are told once, with what they are', async () => {
        const changes = [];
        const events = [];
        const client = await open(
          {},
          {
            onCapabilitiesChanged: (change) => changes.push(change),
            onNotification: (event) => events.push(event),
          },
        );
        await page.evaluate(() => {
          window.exposed.set('fresh', { handler: () => 1, description: 'new here' });
          window.exposed.notify('notifications/state/changed', { field: 'x' });
        });
        await client.call('barrier');
        assert.deepEqual(changes, [{ added: ['fresh'], removed: [], changed: [] }]);
        assert.equal((await client.describeCapability('fresh')).description, 'new here');
        assert.deepEqual(events.sort(), [
          'notifications/capabilities/list_changed',
          'notifications/state/changed',
        ]);
      });
    });

    describe('a plain app that tells its agent', () => {
      const WAYS = [
        ['globals'],
        ['legacy'],
        ['notify'],
        ['property'],
        ['registrar'],
        ['globals', 'legacy', 'property'],
      ];
      for (const emit of WAYS) {
        test(`by ${emit.join(' and ')} is heard once`, async () => {
          const heard = [];
          const infos = [];
          const client = await open(
            { kind: 'plain', odd: { emit } },
            {
              onNotification: (event, data) => heard.push([event, data]),
              onElicitation: ({ params }) => params,
            },
          );
          await page.evaluate(() => {
            window.abp.notify('notifications/state/changed', { newValue: 1 });
            window.abp.notify('notifications/state/changed', { newValue: 2 });
          });
          const onProgress = (info) => infos.push(info);
          assert.equal((await client.call('steps', {}, { onProgress })).data, 'done');
          assert.deepEqual(heard, [
            ['notifications/state/changed', { newValue: 1 }],
            ['notifications/state/changed', { newValue: 2 }],
          ]);
          if (emit[0] === 'notify') return;
          assert.equal(infos.length, 1);
          assert.equal(infos[0].percentage, 25);
          assert.equal((await client.call('ask', { q: 1 })).data.data.q, 1);
        });
      }

      test('that its capabilities changed is asked what they are', async () => {
        const changes = [];
        const client = await open(
          { kind: 'plain' },
          { onCapabilitiesChanged: (change) => changes.push(change) },
        );
        await page.evaluate(() => window.abp.notifyChanges({ changed: ['echo'] }));
        await client.call('barrier');
        assert.deepEqual(changes, [{ added: [], removed: [], changed: ['echo'] }]);
        assert.equal((await client.describeCapability('echo')).description, 'Does echo');
      });
    });

    describe('a plain app whose cancel', () => {
      for (const cancel of ['object', 'alias', 'boolean']) {
        test(`is of another form (${cancel}) is understood`, async () => {
          const client = await open({ kind: 'plain', odd: { cancel } });
          const controller = new AbortController();
          const pending = client.call('hang', {}, { signal: controller.signal });
          await until(() => window.started === 1);
          controller.abort('enough');
          const response = await pending;
          assert.equal(response.cancelled, true);
          assert.equal(response.error.code, 'CANCELLED');
          assert.deepEqual(await page.evaluate(() => window.aborted), ['enough']);
          assert.equal((await client.cancel('nobody')).cancelled, false);
        });
      }

      for (const sample of ['fails', 'throws']) {
        test(`is acknowledged, and whose call then ${sample} as the protocol's sample does: it is cancelled`, async () => {
          const client = await open({ kind: 'plain', odd: { sample } });
          const controller = new AbortController();
          const calls = [
            client.call('hang', {}, { signal: controller.signal }),
            client.call('hang', {}, { callId: 'A' }),
          ];
          await until(() => window.started === 2);
          controller.abort('enough');
          assert.equal((await client.cancel('A', 'this, too')).cancelled, true);
          for (const response of await Promise.all(calls)) {
            assert.equal(response.success, false);
            assert.equal(response.cancelled, true);
            assert.equal(response.error.code, 'CANCELLED');
          }
          assert.equal((await calls[0]).error.message, 'enough');
          const failed = await client.call('throw', { name: 'code' }).catch((error) => error);
          assert.equal(failed.cancelled, undefined);
        });
      }

      const SAYS = {
        false: 'The app gave no reason',
        none: 'The app has no cancel function',
        throws: 'no cancel today',
        silent: 'The app gave no reason',
      };
      for (const [cancel, reason] of Object.entries(SAYS)) {
        test(`stops nothing (${cancel}): the result decides if it comes`, async () => {
          const client = await open({ kind: 'plain', odd: { cancel } });
          const controller = new AbortController();
          const pending = client.call('deaf', {}, { signal: controller.signal, callId: 'A' });
          await until(() => window.started === 1);
          controller.abort('enough');
          const answer = await client.cancel('A');
          assert.equal(answer.cancelled, false);
          assert.equal(answer.callId, 'A');
          assert.equal(answer.reason, reason);
          await page.evaluate(() => window.release('after all'));
          const response = await pending;
          assert.equal(response.success, true);
          assert.equal(response.data, 'after all');
          assert.equal((await client.cancel('A')).reason, 'Operation already completed');
        });

        test(`stops nothing (${cancel}): the call is given up after the grace period`, async () => {
          const client = await open({ kind: 'plain', odd: { cancel } }, { limits: { grace: 50 } });
          const controller = new AbortController();
          const pending = client.call('hang', {}, { signal: controller.signal });
          await until(() => window.started === 1);
          controller.abort('enough');
          const response = await pending;
          assert.equal(response.success, false);
          assert.equal(response.cancelled, true);
          assert.equal(response.error.message, 'enough');
          const late = await client.call('hang', {}, { timeout: 50 });
          assert.equal(late.error.code, 'TIMEOUT');
          assert.equal(late.cancelled, true);
          assert.equal((await client.call('echo', 1)).data, 1);
        });
      }

      test('knows no callId answers false, and its call is given up after the grace period', async () => {
        const client = await open(
          { kind: 'plain', odd: { noCallId: true } },
          { limits: { grace: 50 } },
        );
        const response = await client.call('hang', {}, { timeout: 50 });
        assert.equal(response.error.code, 'TIMEOUT');
        // The page has the grace period for its answer to `cancel`, too.
        const patient = await connect({ limits: { grace: 600_000 } });
        const again = await patient.cancel('whatever');
        assert.equal(again.reason, 'Operation not found');
      });
    });

    describe('a plain app whose call', () => {
      /** Wraps the app's own call in one that settles in no way that the protocol knows. */
      const odd = async (how) => {
        const client = await open({ kind: 'plain' });
        await page.evaluate((way) => {
          const error = Object.assign(new Error('slow down'), {
            code: 'RATE_LIMITED',
            retryable: true,
            retryAfter: 50,
          });
          const circular = { name: 'Error', message: 'goes round' };
          circular.circular = circular;
          window.abp.call = {
            rejects: () => Promise.reject(new Error('broken')),
            throws: () => {
              throw error;
            },
            text: () => Promise.reject('bare words'),
            nothing: () => Promise.reject(),
            aborts: () => Promise.reject(new DOMException('stopped', 'AbortError')),
            circular: () => Promise.reject(circular),
            raw: async () => ({ pdf: 'aGk=' }),
            undefined: async () => {},
            bare: async () => ({ success: false, cancelled: true }),
          }[way];
        }, how);
        return client.call('echo');
      };
      const ENDS = {
        rejects: { code: 'OPERATION_FAILED', message: 'broken', retryable: false },
        throws: { code: 'RATE_LIMITED', message: 'slow down', retryable: true, retryAfter: 50 },
        text: { code: 'OPERATION_FAILED', message: 'bare words', retryable: false },
        nothing: { code: 'OPERATION_FAILED', message: 'undefined', retryable: false },
        circular: { code: 'OPERATION_FAILED', message: 'goes round', retryable: false },
      };
      for (const [how, error] of Object.entries(ENDS)) {
        test(`rejects or throws (${how}) has failed`, async () => {
          const response = await odd(how);
          assert.deepEqual([response.success, response.error], [false, error]);
        });
      }
      test('rejects with an AbortError is cancelled, and so is one that says no more', async () => {
        for (const how of ['aborts', 'bare']) {
          const response = await odd(how);
          assert.equal(response.success, false);
          assert.equal(response.cancelled, true);
          assert.equal(response.error.code, 'CANCELLED');
        }
      });
      test('answers with no response has failed, and what it said is kept', async () => {
        const raw = await odd('raw');
        assert.equal(raw.success, false);
        assert.equal(raw.error.code, 'OPERATION_FAILED');
        assert.deepEqual(raw.error.details, { pdf: 'aGk=' });
        assert.equal((await odd('undefined')).error.code, 'OPERATION_FAILED');
      });
    });

    describe('a plain app whose listCapabilities', () => {
      for (const list of ['sync', 'envelope']) {
        test(`is of another form (${list}) is understood`, async () => {
          const client = await open({ kind: 'plain', odd: { list, capabilities: 'none' } });
          assert.equal((await client.describeCapability('echo')).description, 'Does echo');
        });
      }
      for (const list of ['empty', 'throws', 'none', 'hangs']) {
        test(`says nothing (${list}): what initialize said stands`, async () => {
          const client = await open({ kind: 'plain', odd: { list } });
          assert.deepEqual(await client.describeCapability('echo'), {
            name: 'echo',
            available: true,
          });
        });
      }
    });

    describe('the page under a call', () => {
      const ENDINGS = {
        'navigates elsewhere': (own) => library.goto(own, 'about:blank'),
        'navigates itself': (own) =>
          own.evaluate(() => void setTimeout(() => (location.href = 'about:blank'))),
        'is reloaded': (own) => own.reload({ waitUntil: 'domcontentloaded' }),
        'is closed': (own) => own.close(),
        crashes: async (own) => {
          const devtools = await library.devtools(own);
          devtools.send('Page.crash').catch(() => {});
        },
        'visits chrome://crash': (own) => own.goto('chrome://crash').catch(() => {}),
      };
      for (const [what, end] of Object.entries(ENDINGS)) {
        test(`${what}: what is pending settles with DISCONNECTED`, async () => {
          const own = await browser.newPage();
          await goto({}, own);
          const lost = [];
          const client = await connect({ onDisconnect: ({ code }) => lost.push(code) }, own);
          const calls = [client.call('hang'), client.call('hang', {}, { callId: 'A' })];
          await until(() => window.started === 2, own);
          const ended = end(own);
          for (const response of await Promise.all(calls)) {
            assert.equal(response.success, false);
            assert.equal(response.error.code, 'DISCONNECTED');
            assert.equal(response.error.retryable, false);
            assert.equal(response.cancelled, undefined);
          }
          assert.deepEqual(lost, ['DISCONNECTED']);
          assert.equal(client.connected, false);
          assert.equal((await client.call('echo')).error.code, 'DISCONNECTED');
          assert.equal((await client.cancel('A')).cancelled, false);
          await ended;
          if (!/clos/.test(what)) await own.close();
        });
      }

      test('goes with its browser: what is pending settles with DISCONNECTED', async () => {
        const other = await library.launch();
        const own = await other.newPage();
        await goto({}, own);
        const client = await connect({}, own);
        const pending = client.call('hang');
        await until(() => window.started === 1, own);
        await other.close();
        assert.equal((await pending).error.code, 'DISCONNECTED');
      });

      test('is gone: no new session begins, and that is said at once', async () => {
        const own = await browser.newPage();
        await goto({}, own);
        const client = await connect({}, own);
        await own.close();
        await assert.rejects(client.reconnect(), { name: 'AbpError', code: 'DISCONNECTED' });
        await assert.rejects(connect({}, own), { code: 'DISCONNECTED' });
      });

      for (const [how, end] of [
        ['is closed', (own) => own.close()],
        ['loses the frame', (own) => own.evaluate(() => document.querySelector('iframe').remove())],
      ])
        test(`${how}: who reconnects by itself gives up with words, and no call waits for ever`, async () => {
          const own = await browser.newPage();
          await goto({}, own);
          await own.evaluate((src) => {
            const iframe = document.createElement('iframe');
            iframe.src = src;
            document.body.append(iframe);
            return new Promise((resolve) => (iframe.onload = resolve));
          }, address({}));
          const frame = own.frames().find((other) => other !== own.mainFrame());
          let told;
          const gaveUp = new Promise((resolve) => (told = resolve));
          const reconnect = { delay: 1 };
          const client = await connect({ reconnect, onReconnect: told }, frame);
          const pending = client.call('hang', {}, { retry: true });
          await until(() => window.started === 1, frame);
          await end(own);
          const { error, metadata } = await pending;
          assert.deepEqual([error.code, metadata.outcome], ['DISCONNECTED', 'unknown']);
          const why = await gaveUp;
          assert.deepEqual([why?.code, why?.retryable], ['DISCONNECTED', false]);
          assert.match(why.message, /open another/);
          if (!own.isClosed()) await own.close();
        });

      test('is reloaded or another: reconnect begins a new session', async () => {
        const client = await open({});
        const first = client.sessionId;
        await page.reload();
        await client.reconnect();
        assert.notEqual(client.sessionId, first);
        await goto({ kind: 'plain' });
        await client.reconnect();
        assert.equal(client.app.id, 'plain.page');
        assert.equal((await client.call('echo', 4)).data, 4);
      });

      test('changes its address without leaving its document: the session goes on', async () => {
        const client = await open({});
        const { sessionId } = client;
        const pending = client.call('deaf');
        await until(() => window.started === 1);
        await page.evaluate(() => {
          history.pushState({}, '', '#elsewhere');
          window.release('still here');
        });
        assert.equal((await pending).data, 'still here');
        assert.equal(client.sessionId, sessionId);
      });

      test('goes back to a page that was kept: its old session has ended, a new one begins', async () => {
        const own = await browser.newPage();
        await goto({}, own);
        const client = await connect({}, own);
        const pending = client.call('hang');
        await until(() => window.started === 1, own);
        await library.goto(own, address({ kind: 'plain' }));
        assert.equal((await pending).error.code, 'DISCONNECTED');
        await library.back(own);
        await client.reconnect();
        assert.equal(client.app.id, 'test.app');
        assert.equal((await client.call('echo', 5)).data, 5);
        await own.close();
      });

      test('goes while the app is awaited: the next document is waited for', async () => {
        await library.goto(page, 'about:blank');
        const connecting = connect();
        await goto({ later: 100 });
        assert.equal((await (await connecting).call('echo', 6)).data, 6);
      });
    });

    describe('waiting for window.abp', () => {
      test('it may come late', async () => {
        const client = await open({ later: 300 });
        assert.equal((await client.call('echo', 7)).data, 7);
      });

      test('it may never come, and another library may have its name', async () => {
        await library.goto(page, 'about:blank');
        await assert.rejects(connect({ timeout: 100 }), { code: 'TIMEOUT', retryable: true });
        await goto({ taken: true });
        // A busy machine may not have looked within the first of them.
        let error;
        for (let timeout = 100; !error || error.code === 'TIMEOUT'; timeout *= 2) {
          error = await connect({ timeout }).then(assert.fail, (reason) => reason);
        }
        assert.equal(error.code, 'NOT_SUPPORTED');
      });

      test('a signal gives it up', async () => {
        await library.goto(page, 'about:blank');
        const controller = new AbortController();
        const connecting = connect({ signal: controller.signal });
        controller.abort(new Error('never mind'));
        await assert.rejects(connecting, { message: 'never mind' });
      });

      test('what stands in for it until the app has loaded passes the handlers on', async () => {
        await goto({ kind: 'none' });
        await page.evaluate(() => {
          // The protocol's own stub: it queues what is asked before the app is there.
          let resolve;
          const loaded = new Promise((done) => (resolve = done));
          const late =
            (name) =>
            async (...args) => (await loaded, window.abp[name](...args));
          window.abp = Object.fromEntries(
            ['initialize', 'shutdown', 'call', 'listCapabilities'].map((name) => [
              name,
              late(name),
            ]),
          );
          window.__abpReadyResolve = resolve;
        });
        const connecting = connect();
        await until(() => '__abp_notification' in window);
        await page.evaluate(async () => {
          const { expose } = await import('/parts/main/index.js');
          expose(
            {
              app: { id: 'late.app', name: 'Late', version: '1' },
              capabilities: { echo: (params) => params },
            },
            { origins: [location.origin] },
          );
        });
        const client = await connecting;
        assert.equal(client.app.id, 'late.app');
        assert.equal((await client.call('echo', 8)).data, 8);
      });

      test('an app that refuses is heard, and one that says nothing of a session', async () => {
        await goto({ kind: 'plain' });
        await page.evaluate(() => {
          window.abp.initialize = async () => {
            throw Object.assign(new Error('not you'), {
              code: 'PERMISSION_DENIED',
              retryable: true,
            });
          };
        });
        await assert.rejects(connect(), { code: 'PERMISSION_DENIED', message: 'not you' });
        await page.evaluate(() => {
          window.abp.initialize = async () => ({ protocolVersion: '0.1' });
        });
        await assert.rejects(connect(), { code: 'SESSION_INVALID' });
      });
    });

    describe('frames', () => {
      for (const [where, host] of [
        ['of the same site', 'localhost'],
        ['of another site', '127.0.0.1'],
      ]) {
        test(`an app in an iframe ${where} is heard by the session of its own frame alone`, async () => {
          const heard = { page: [], frame: [] };
          await goto({});
          await page.evaluate(
            (src) => {
              const iframe = document.createElement('iframe');
              iframe.src = src;
              document.body.append(iframe);
              return new Promise((resolve) => (iframe.onload = resolve));
            },
            address({ kind: 'plain' }, `http://${host}:${server.port}`),
          );
          const frame = page.frames().find((other) => other !== page.mainFrame());
          const client = await connect({ onNotification: (event) => heard.page.push(event) });
          await frame.evaluate(() => window.abp.notify('to nobody yet'));
          const inner = await connect(
            { onNotification: (event) => heard.frame.push(event) },
            frame,
          );
          assert.equal(inner.app.id, 'plain.page');
          assert.equal(client.app.id, 'test.app');
          await frame.evaluate(() => window.abp.notify('from the frame'));
          await page.evaluate(() => window.exposed.notify('from the page'));
          await Promise.all([client.call('barrier'), inner.call('barrier')]);
          assert.deepEqual(heard, { page: ['from the page'], frame: ['from the frame'] });
          const pending = inner.call('hang');
          await until(() => window.started === 1, frame);
          await page.evaluate(() => document.querySelector('iframe').remove());
          assert.equal((await pending).error.code, 'DISCONNECTED');
          assert.equal((await client.call('echo', 9)).data, 9);
        });
      }
    });

    describe('two clients of one page', () => {
      test('where the app has one session, the second waits for it to end, and the first is untouched', async () => {
        const heard = [];
        const first = await open(
          { kind: 'plain', odd: { strict: true } },
          { onNotification: (event) => heard.push(event), onElicitation: () => 'the first' },
        );
        const pending = first.call('deaf');
        await until(() => window.started === 1);
        await assert.rejects(connect({ timeout: 300 }), { code: 'TIMEOUT' });
        await page.evaluate(() => {
          window.abp.notify('for the first');
          window.release('mine');
        });
        assert.equal((await pending).data, 'mine');
        assert.deepEqual(heard, ['for the first']);
        await page.evaluate(() => {
          const { initialize } = window.abp;
          window.abp.initialize = (params) =>
            initialize(params).catch((error) => {
              window.refused = error.code;
              throw error;
            });
        });
        const waiting = connect({ onElicitation: () => 'the second' });
        await until(() => window.refused === 'ALREADY_INITIALIZED');
        assert.equal(answerIn(await first.call('ask', {})), 'the first');
        first.close();
        assert.equal((await (await waiting).call('echo', 10)).data, 10);
      });

      for (const kind of ['ours', 'plain']) {
        test(`where the app takes both, each gets its own answers, and hears what is for all (${kind})`, async () => {
          const heard = [[], []];
          const options = (i) => ({ onNotification: (event) => heard[i].push(event) });
          const first = await open({ kind }, options(0));
          const second = await connect(options(1));
          const pending = first.call('deaf');
          await until(() => window.started === 1);
          assert.equal((await second.call('echo', 'second')).data, 'second');
          await page.evaluate(() => {
            window.abp.notify('for all');
            window.release('first');
          });
          assert.equal((await pending).data, 'first');
          await second.call('barrier');
          assert.deepEqual(heard, [['for all'], ['for all']]);
        });
      }
    });

    describe('data', () => {
      const bytes = (size) => Uint8Array.from({ length: size }, (_, i) => (i * 31) % 256);

      for (const kind of ['ours', 'plain']) {
        test(`bytes come out of the page as they are: buffers, views, Blobs (${kind})`, async () => {
          const client = await open({ kind });
          const value = async (name) => (await client.call('value', { name })).data;
          const pdf = await value('buffer');
          assert.ok(pdf.content instanceof ArrayBuffer);
          assert.deepEqual(new Uint8Array(pdf.content), bytes(1000));
          assert.equal(pdf.mimeType, 'application/pdf');
          const { pixels, samples } = await value('view');
          assert.deepEqual(pixels, bytes(300).slice(100, 200));
          assert.deepEqual(samples, new Float64Array([1.5, -2.5]));
          const { content } = await value('blob');
          assert.equal(content.type, 'image/png');
          assert.deepEqual(new Uint8Array(await content.arrayBuffer()), bytes(70_000));
          assert.deepEqual(await value('base64'), {
            content: 'aGVsbG8=',
            encoding: 'base64',
            mimeType: 'text/plain',
          });
        });

        test(`bytes go into the page as they are (${kind})`, async () => {
          const client = await open({ kind });
          const { data } = await client.call('seen', {
            buffer: new Uint8Array([1, 2, 3]).buffer,
            view: new Uint8Array([0, 4, 5, 0]).subarray(1, 3),
            node: Buffer.from([6]),
            map: new Map([[1, 2]]),
            big: 5n,
            number: NaN,
            text: '~b',
          });
          assert.deepEqual(data, {
            buffer: 'ArrayBuffer 1,2,3',
            view: 'Uint8Array 4,5',
            node: 'Uint8Array 6',
            map: 'Map 1,2',
            big: 'BigInt 5',
            number: 'Number NaN',
            text: 'String ~b',
          });
        });
      }

      test('more than one piece carries is put together again, both ways', async () => {
        const client = await open({ kind: 'plain' });
        const large = (await client.call('value', { name: 'large' })).data;
        assert.ok(large.content.byteLength > 2 ** 22);
        const { data } = await client.call('echo', large);
        assert.ok(Buffer.from(data.content).equals(Buffer.from(bytes(large.content.byteLength))));
      });

      test('what JSON has no word for arrives as what it was', async () => {
        const client = await open({});
        const { data } = await client.call('value', { name: 'odd' });
        assert.deepEqual(data.numbers, [NaN, Infinity, -Infinity, -0]);
        assert.equal(data.big, 2n ** 70n);
        assert.deepEqual(data.date, new Date(86_400_000));
        assert.deepEqual(data.map, new Map([['a', new Set([1, { deep: NaN }])]]));
        assert.deepEqual(data.error, { name: 'RangeError', message: 'too far' });
        assert.equal(data.tilde, '~n5');
        assert.deepEqual(Object.keys(data.proto), ['__proto__']);
        assert.equal(Object.getPrototypeOf(data.proto), Object.prototype);
        assert.equal(data.lone, '\ud800');
        assert.equal('missing' in data, false);
      });

      for (const kind of ['ours', 'plain']) {
        test(`a result that cannot be sent has failed, and says why (${kind})`, async () => {
          const client = await open({ kind });
          const REASONS = {
            cycle: /contains a cycle/,
            promise: /Promise/,
            element: /HTMLBodyElement/,
            // What other apps give may have functions beside the data.
            ...(kind === 'ours' && { method: /function/ }),
          };
          for (const [name, why] of Object.entries(REASONS)) {
            const { success, error } = await client.call('value', { name });
            assert.equal(success, false);
            assert.equal(error.code, 'OPERATION_FAILED');
            assert.match(error.message, why);
          }
        });
      }

      test('what the page says in no known words is counted, and costs no other call anything', async () => {
        const client = await open({}, { limits: { grace: 50 } });
        await page.evaluate(() => {
          const { stringify } = JSON;
          JSON.stringify = (value, ...more) => {
            JSON.stringify = stringify;
            return value.type === 'capabilities/call-result' ? 'null' : stringify(value, ...more);
          };
        });
        const controller = new AbortController();
        const pending = client.call('echo', 1, { signal: controller.signal });
        // The answer never settles the call, so its arrival shows only here.
        while (!client.counters.malformed) await turn();
        controller.abort('enough');
        const lost = await pending;
        assert.equal(lost.success, false);
        assert.equal(lost.cancelled, true);
        assert.equal(client.counters.malformed, 1);
        assert.equal((await client.call('echo', 2)).data, 2);
      });

      test('parameters that cannot be sent are refused, and nothing is called', async () => {
        const client = await open({});
        const cycle = {};
        cycle.cycle = cycle;
        const REASONS = [
          [cycle, /contains a cycle/],
          [{ f() {} }, /function/],
          [{ s: Symbol('s') }, /symbol/],
          [{ p: Promise.resolve() }, /Promise/],
          [{ b: new Blob(['x']) }, /read it first/],
        ];
        for (const [params, why] of REASONS) {
          const { success, error } = await client.call('echo', params);
          assert.equal(success, false);
          assert.equal(error.code, 'INVALID_PARAMS');
          assert.match(error.message, why);
        }
      });
    });

    if (name === 'puppeteer') {
      test('Puppeteer gives up what takes long: the session does not', async () => {
        const impatient = await puppeteer.connect({
          browserWSEndpoint: browser.wsEndpoint(),
          protocolTimeout: 10_000, // long enough for all that is answered, on a busy machine, too
        });
        const own = await impatient.newPage();
        await goto({}, own);
        const client = await connect({}, own);
        const pending = client.call('deaf');
        const hangs = () => own.evaluate(() => new Promise(() => {}));
        await Promise.all([1, 2].map(() => assert.rejects(hangs(), /timed out/)));
        await own.evaluate(() => window.release('in the end'));
        assert.equal((await pending).data, 'in the end');
        assert.equal((await client.call('echo', 1)).data, 1);
        await own.close();
        await impatient.disconnect();
      });
    }
  });
}
