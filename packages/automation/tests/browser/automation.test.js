// An agent in Node and apps in pages, in Chromium, driven by Puppeteer and by Playwright: sessions,
// the ends of pages, frames and data.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import puppeteer from 'puppeteer-core';
import { AgentDriver } from '../../../../tests/support/drivers.js';
import { sections } from '../../../../tests/support/sections.js';
import { Log, play } from '../../../../tests/support/transcript.js';
import { LIBRARIES, answerIn, drive } from '../support/drive.js';

for (const [name, library] of Object.entries(LIBRARIES)) {
  describe(name, () => {
    const { driven, address, goto, connect, open, until } = drive(library);

    // Each library plays the transcripts once, with one of the two kinds of app.
    for (const kind of name === 'playwright' ? ['plain'] : ['ours']) {
      describe(`the transcripts, ${kind === 'ours' ? 'our app' : 'a plain app'}`, () => {
        let log;
        let own;
        before(async () => {
          own = await driven.browser.newPage();
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
            ['close', 'crash', 'error'].map((event) => driven.page.listenerCount(event));
          const before = listeners();
          const client = await connect();
          const pending = client.call('hang');
          await until(() => window.started === 1);
          client.close();
          assert.equal((await pending).cancelled, true);
          await until(() => window.aborted.length === 1 && !window.abp.initialized);
          await until(() => !Object.keys(window).some((key) => /^__abp(On|_(?!cancel))/.test(key)));
          // The page is watched until it has heard of the end.
          while (listeners().some((count, i) => count > before[i]))
            await driven.page.evaluate(() => {});
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
        const own = await driven.browser.newPage();
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
          const own = await driven.browser.newPage();
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
        const own = await driven.browser.newPage();
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
          const own = await driven.browser.newPage();
          await goto({}, own);
          await own.evaluate((src) => {
            const iframe = document.createElement('iframe');
            iframe.src = src;
            document.body.append(iframe);
            return new Promise((resolve) => (iframe.onload = resolve));
          }, address({}));
          const frame = own.frames().find((other) => other !== own.mainFrame());
          let onReconnect;
          const gaveUp = new Promise((resolve) => (onReconnect = resolve));
          const reconnect = { delay: 1 };
          const client = await connect({ reconnect, onReconnect: onReconnect }, frame);
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
        await driven.page.reload();
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
        await driven.page.evaluate(() => {
          history.pushState({}, '', '#elsewhere');
          window.release('still here');
        });
        assert.equal((await pending).data, 'still here');
        assert.equal(client.sessionId, sessionId);
      });

      test('goes back to a page that was kept: its old session has ended, a new one begins', async () => {
        const own = await driven.browser.newPage();
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
        await library.goto(driven.page, 'about:blank');
        const connecting = connect();
        await goto({ later: 100 });
        assert.equal((await (await connecting).call('echo', 6)).data, 6);
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
          await driven.page.evaluate(
            (src) => {
              const iframe = document.createElement('iframe');
              iframe.src = src;
              document.body.append(iframe);
              return new Promise((resolve) => (iframe.onload = resolve));
            },
            address({ kind: 'plain' }, host),
          );
          const frame = driven.page.frames().find((other) => other !== driven.page.mainFrame());
          const client = await connect({ onNotification: (event) => heard.page.push(event) });
          await frame.evaluate(() => window.abp.notify('to nobody yet'));
          const inner = await connect(
            { onNotification: (event) => heard.frame.push(event) },
            frame,
          );
          assert.equal(inner.app.id, 'plain.page');
          assert.equal(client.app.id, 'test.app');
          await frame.evaluate(() => window.abp.notify('from the frame'));
          await driven.page.evaluate(() => window.exposed.notify('from the page'));
          await Promise.all([client.call('barrier'), inner.call('barrier')]);
          assert.deepEqual(heard, { page: ['from the page'], frame: ['from the frame'] });
          const pending = inner.call('hang');
          await until(() => window.started === 1, frame);
          await driven.page.evaluate(() => document.querySelector('iframe').remove());
          assert.equal((await pending).error.code, 'DISCONNECTED');
          assert.equal((await client.call('echo', 9)).data, 9);
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
        await driven.page.evaluate(() => {
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
          browserWSEndpoint: driven.browser.wsEndpoint(),
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
