// Workers in a real browser: apps that live in dedicated and shared ones, and pools of workers, in
// pages that are cross-origin isolated, where memory is shared, and in others.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, beforeEach, describe, test } from 'node:test';
import { CORE, serve, sites } from '../support/browser.js';

/** The page embeds another of its kind, which a strict policy must allow. */
const PAGE = '/tests/browser/pages/workers.html?embeds';
let site, isolated, page;
before(async () => {
  [site, isolated] = await Promise.all([sites(), serve({ isolated: true })]);
  page = await site.browser.newPage();
});
after(() => {
  isolated.close();
  return site.close();
});

const PLACES = {
  'in a page that is cross-origin isolated': () => `http://127.0.0.1:${isolated.port}`,
  'in a page that is not': () => site.hostOrigin,
};
async function visit(origin) {
  await page.goto(origin + PAGE);
  await page.waitForFunction(() => window.isReady);
}
let serial = 0;
const connectTo = (what) =>
  page.evaluate((w) => window.connectTo(w), { options: { control: `app-${++serial}` }, ...what });
const echo = async (value) =>
  (await page.evaluate((v) => window.client.call('echo', v), value)).data;

describe('an app in a worker', () => {
  /** For a handshake that an event ends: a busy browser takes long to start a worker. */
  const timeout = 600_000;
  beforeEach(() => visit(site.hostOrigin));

  for (const kind of ['Worker', 'SharedWorker']) {
    test(`a ${kind} that is given begins one session after the other, and runs on the same core as the page`, async () => {
      await connectTo({ kind });
      assert.equal(await echo(1), 1);
      await page.evaluate(() => (window.client.close(), window.client.reconnect()));
      assert.equal(await echo(2), 2);
      assert.equal(await page.evaluate(() => window.core), CORE);
      const sizes = await page.evaluate(async () => {
        const content = new ArrayBuffer(1 << 20);
        const params = { content, mimeType: 'a/b' };
        const { data } = await window.client.call('size', params, { transfer: [content] });
        const bytes = await window.client.call('bytes', { size: 1000 });
        return [data, content.byteLength, bytes.data.content.byteLength];
      });
      assert.deepEqual(sizes, [1 << 20, 0, 1000]);
    });

    test(`a ${kind} whose script is missing settles the handshake`, async () => {
      const what = { kind, made: true, script: 'missing.js', timeout: 60_000 };
      // Once in some thousand times Chromium does not tell that a shared worker’s script is
      // missing. Then the clock settles the handshake, and the next worker is asked.
      let outcome;
      for (let attempt = 0; attempt < 5 && outcome?.code !== 'DISCONNECTED'; attempt++) {
        const options = { control: `missing-${attempt}` };
        outcome = await page.evaluate((w) => window.failToConnect(w), { ...what, options });
        if (!outcome.told) assert.deepEqual(outcome, { code: 'TIMEOUT', told: false });
      }
      assert.deepEqual(outcome, { code: 'DISCONNECTED', told: true });
    });
  }

  test('a worker whose script throws settles the handshake', async () => {
    const what = { kind: 'Worker', made: true, options: { control: 'x', throws: true }, timeout };
    const outcome = await page.evaluate((w) => window.failToConnect(w), what);
    assert.deepEqual(outcome, { code: 'DISCONNECTED', told: true });
  });

  test('an error that nobody catches is not the end of a worker that runs', async () => {
    await connectTo({ kind: 'Worker' });
    await page.evaluate(() => {
      window.worker.addEventListener('error', (event) => {
        event.preventDefault();
        window.heardError = true;
      });
      window.begin('throwLater');
    });
    await page.waitForFunction(() => window.heardError);
    assert.equal(await echo('alive'), 'alive');
  });

  test('no engine tells that a worker was terminated: the heartbeat does, and a fresh one takes its place', async () => {
    await connectTo({ kind: 'Worker', made: true, limits: { heartbeat: 2000 } });
    await page.evaluate(() => window.begin('hang'));
    await page.waitForFunction(() => window.control.lines.includes('app: hangs'));
    const code = await page.evaluate(async () => {
      window.worker.terminate();
      return (await window.pending).error.code;
    });
    assert.deepEqual(
      [code, await page.evaluate(() => window.lost)],
      ['DISCONNECTED', 'DISCONNECTED'],
    );
    await page.evaluate(() => window.client.reconnect());
    assert.equal(await echo('fresh'), 'fresh');
  });

  test('a shared worker keeps no more connections than its limit, however many pages come and go', async () => {
    const options = { control: `shared-${++serial}` };
    const counts = await page.evaluate(
      async (what) => {
        for (let i = 0; i < 70; i++) {
          await window.connectTo(what);
          window.client.close();
        }
        await window.connectTo(what);
        return (await window.client.call('connections')).data;
      },
      { kind: 'SharedWorker', options },
    );
    assert.equal(counts, 64);
  });

  test('a page that goes away leaves the shared worker to the others, and its calls are aborted', async () => {
    const options = { control: `shared-${++serial}` };
    await connectTo({ kind: 'SharedWorker', options });
    await page.evaluate(
      async ([address, what]) => {
        const frame = document.createElement('iframe');
        frame.src = address;
        document.body.append(frame);
        window.frame = frame;
        while (!frame.contentWindow?.isReady) await new Promise((done) => setTimeout(done, 10));
        await frame.contentWindow.connectTo(what);
        frame.contentWindow.begin('hang');
      },
      [PAGE, { kind: 'SharedWorker', options }],
    );
    await page.waitForFunction(() => window.control.lines.includes('app: hangs'));
    await page.evaluate(() => window.frame.remove());
    await page.waitForFunction(() => window.control.lines.some((line) => /stopped/.test(line)));
    assert.equal(await echo('still served'), 'still served');
  });
});

const open = (options) => page.evaluate((o) => window.openPool(o), options);
const cancelled = (name, params = {}) =>
  page.evaluate(([n, p]) => window.cancelled(n, p), [name, params]);
const started = () => page.evaluate(() => window.started);
const STOPPED = { success: false, cancelled: true, message: 'enough' };

for (const [place, origin] of Object.entries(PLACES)) {
  describe(`a pool stops computations, ${place}`, () => {
    const shares = place === 'in a page that is cross-origin isolated';
    before(() => visit(origin()));

    test('is what the test takes it for', async () => {
      await open();
      assert.equal(await page.evaluate(() => window.crossOriginIsolated), shares);
      assert.equal((await page.evaluate(() => window.client.call('shares'))).data, shares);
    });

    test(`a computation that asks its token is stopped ${shares ? 'in its midst' : 'with its worker, since nothing can reach it'}`, async () => {
      await open({ grace: shares ? 60_000 : 200 });
      assert.deepEqual(await cancelled('asks'), STOPPED);
      assert.equal(await echo('next'), 'next');
      assert.equal(await started(), shares ? 1 : 2);
    });

    test(`a task that takes its token ${shares ? 'is told nothing' : 'is told once that it is not shared and what shares it, before any worker is terminated'}`, async () => {
      await open({ grace: 1 });
      const told = await page.evaluate(async (awaitsOne) => {
        const texts = [];
        let taken;
        const { warn } = console;
        console.warn = (text) => (texts.push(text), taken?.());
        const next = () => new Promise((resolve) => (taken = resolve));
        const first = awaitsOne && next();
        await window.client.call('shares');
        await first;
        await window.client.call('shares');
        const last = next();
        await window.cancelled('deaf');
        await last;
        console.warn = warn;
        return texts;
      }, !shares);
      assert.match(told.pop(), /the task deaf ran on/);
      assert.equal(told.length, shares ? 0 : 1);
      if (!shares)
        assert.match(
          told[0],
          /the token of the task shares is not shared .*breathe\(\).*Cross-Origin-Opener-Policy: same-origin.*Cross-Origin-Embedder-Policy: require-corp/,
        );
    });

    test('a computation that yields hears its signal and finds its token set', async () => {
      await open({ grace: 60_000 });
      const direct = await page.evaluate(async () => {
        const controller = new AbortController();
        return window.workers.run('yields')(
          {},
          { signal: controller.signal, progress: () => controller.abort('enough') },
        );
      });
      assert.deepEqual(direct, { cancelled: true, reason: 'enough', name: 'AbortError' });
      assert.deepEqual(await cancelled('yields'), STOPPED);
      assert.equal(await started(), 1);
    });

    test('a computation that breathes is stopped in its midst, whether memory is shared or not', async () => {
      await open({ grace: 60_000 });
      assert.deepEqual(await cancelled('breathes'), STOPPED);
      assert.equal(await started(), 1);
    });

    test('a computation that never asks is stopped by ending its worker; other calls notice nothing', async () => {
      await open({ size: 2, grace: 200 });
      const outcome = await page.evaluate(async () => {
        const { client } = window;
        const controller = new AbortController();
        let neighbour;
        await new Promise((running) => {
          neighbour = client.call('yields', {}, { signal: controller.signal, onProgress: running });
        });
        const stopped = window.cancelled('deaf');
        const waited = client.call('echo', 'waited');
        await stopped;
        const after = await Promise.race([neighbour, Promise.resolve('runs')]);
        controller.abort();
        return {
          stopped: await stopped,
          waited: (await waited).data,
          after,
          neighbour: (await neighbour).cancelled,
        };
      });
      assert.deepEqual(outcome, {
        stopped: STOPPED,
        waited: 'waited',
        after: 'runs',
        neighbour: true,
      });
      assert.equal(await started(), 3);
    });

    test('cancelled computations leave no worker, no listener and no timer behind', async () => {
      await open({ size: 2, grace: 50 });
      const counters = await page.evaluate(async () => {
        window.watchHeld();
        for (let i = 0; i < 5; i++) {
          await Promise.all(['asks', 'deaf'].map((name) => window.cancelled(name)));
        }
        window.client.close();
        await window.workers.close();
        return window.workers.counters;
      });
      assert.deepEqual(counters, { workers: 0, running: 0, waiting: 0 });
      // What the old session's timers wait for comes and finds nothing.
      await page.waitForFunction(() => window.held.timers === 0);
      const { listeners, timers } = await page.evaluate(() => window.held);
      assert.deepEqual({ listeners, timers }, { listeners: 0, timers: 0 });
    });

    if (shares) {
      test('WebAssembly that computes is stopped by the word of its own memory, where it may run', async () => {
        await open({ grace: 60_000 });
        const wasm = [...readFileSync(new URL('../../build/wasm/sieve.wasm', import.meta.url))];
        const counts = await page.evaluate(async (bytes) => {
          const count = (limit, options) =>
            window.workers
              .run('sieve')({ wasm: new Uint8Array(bytes), limit }, options)
              .catch(String);
          const controller = new AbortController();
          return [
            await count(1_000_000),
            await count(2 ** 32 - 1, {
              signal: controller.signal,
              progress: () => controller.abort(),
            }),
            await count(1_000_000),
          ];
        }, wasm);
        // Under the policy of MCP Apps no WebAssembly runs, neither ours nor theirs.
        if (CORE === 'js') for (const count of counts) assert.match(count, /WebAssembly|Compile/);
        else assert.deepEqual(counts, [78_498, -1, 78_498]);
        assert.equal(await started(), 1);
      });
    }
  });
}

describe('a pool, in a page where no memory is shared', () => {
  before(() => visit(site.hostOrigin));

  test('a call that is cancelled while it waits for a worker never began, and one that a worker has is stopped', async () => {
    await open({ grace: 60_000 });
    const told = await page.evaluate(async () => {
      const { client, workers } = window;
      const controllers = [new AbortController(), new AbortController()];
      const [one, two] = controllers.map(({ signal }) => ({ signal }));
      let runs;
      await new Promise((onProgress) => {
        runs = client.call('breathes', {}, { ...one, onProgress });
      });
      const waits = client.call('breathes', {}, two);
      while (!workers.counters.waiting) await new Promise((done) => setTimeout(done));
      controllers[1].abort();
      const outcomes = [(await waits).metadata.outcome];
      controllers[0].abort();
      return [...outcomes, (await runs).metadata.outcome];
    });
    assert.deepEqual(told, ['unstarted', 'stopped']);
    assert.equal(await started(), 1);
  });

  /** What kills a worker in its task, or may; and whether a page can know. */
  const DEATHS = {
    'closes itself': ['closes', /it closed itself/],
    'throws where nobody catches it': ['throwsInATimer', /nothing|undefined/],
    'rejects where nobody catches it': ['rejectsLater', /no ink/],
  };
  for (const [what, [name, why]] of Object.entries(DEATHS))
    for (const locks of name === 'closes' ? ['', 'none', 'refused'] : [''])
      test(`a worker that ${what} fails its task, and those behind it go on${locks && `, locks: ${locks}`}`, async () => {
        const script = `/tests/support/workers/pool.js?${JSON.stringify({ locks })}`;
        await page.evaluate((s) => window.openPool({}, s), script);
        const [[code, outcome, message], ...others] = await page.evaluate(
          (n) => window.withOthersBehind(n),
          name,
        );
        assert.deepEqual([code, outcome, others], ['OPERATION_FAILED', 'unknown', [1, 2]]);
        assert.match(message, why);
        assert.equal(await started(), 2);
      });

  for (const name of ['hangs', 'deaf'])
    test(`a worker that is silently gone fails its task, and those behind it go on: ${name}`, async () => {
      await open();
      const [[code, outcome], ...others] = await page.evaluate(async (n) => {
        const told = window.withOthersBehind(n);
        await window.begun;
        window.worker.terminate();
        return told;
      }, name);
      assert.deepEqual([code, outcome, others], ['OPERATION_FAILED', 'unknown', [1, 2]]);
      assert.equal(await started(), 2);
    });

  test('an idle worker that is silently gone is replaced', async () => {
    await open();
    assert.equal(await echo(1), 1);
    await page.evaluate(() => window.worker.terminate());
    await page.waitForFunction(() => window.workers.counters.workers === 0);
    assert.equal(await echo(2), 2);
    assert.equal(await started(), 2);
  });

  test('one that computes for long, or fails beside its task, is not gone', async () => {
    await open();
    for (const [name, params] of [['busy', { ms: 1500 }], ['handlesRejections'], ['throwsAside']]) {
      const told = await page.evaluate(([n, p]) => window.withOthersBehind(n, p), [name, params]);
      assert.deepEqual(told, ['done', 1, 2], name);
    }
    assert.equal(await started(), 1);
  });

  test('a worker that closes itself before it is ready fails its tasks and is not started for ever', async () => {
    const script = '/tests/support/workers/pool.js?{"closes":true}';
    await page.evaluate((s) => window.openPool({}, s), script);
    const codes = await page.evaluate(async () => {
      const all = await Promise.all([1, 2, 3].map((n) => window.client.call('echo', n)));
      return all.map(({ error }) => error.code);
    });
    assert.deepEqual(codes, Array(3).fill('CAPABILITY_UNAVAILABLE'));
    assert.equal(await started(), 1);
  });

  test('what a worker said before it closed itself counts', async () => {
    await open();
    const told = await page.evaluate(() => window.withOthersBehind('closesAtItsEnd'));
    assert.deepEqual(told, ['done', 1, 2]);
    assert.equal(await started(), 2);
  });

  test('every task of a pool whose workers die is told, and no worker is started for nothing', async () => {
    await open({ size: 2 });
    const codes = await page.evaluate(async () => {
      const all = await Promise.all([1, 2, 3, 4, 5].map(() => window.client.call('closes', {})));
      return all.map(({ error }) => error.code);
    });
    assert.deepEqual(codes, Array(5).fill('OPERATION_FAILED'));
    assert.equal(await started(), 5);
  });

  test('what tasks move is moved on to the agent', async () => {
    await open();
    const sizes = await page.evaluate(async () => {
      const moved = await window.client.call('moved', { size: 1000 });
      const bytes = await window.client.call('bytes', { size: 1000 });
      return [moved.data.pixels.byteLength, bytes.data.content.byteLength];
    });
    assert.deepEqual(sizes, [1000, 1000]);
  });

  test('a worker whose script is missing, or throws, fails its tasks and is not started for ever', async () => {
    for (const script of ['/missing.js', '/tests/support/workers/pool.js?{"throws":true}']) {
      await page.evaluate((s) => window.openPool({ size: 2 }, s), script);
      const codes = await page.evaluate(async () => {
        const all = await Promise.all([1, 2, 3].map((n) => window.client.call('echo', n)));
        return all.map(({ error }) => error.code);
      });
      assert.deepEqual(codes, Array(3).fill('CAPABILITY_UNAVAILABLE'));
      assert.equal(await started(), 2);
    }
  });

  test('a worker of another site, which no policy allows, fails its tasks with the reason', async () => {
    await page.evaluate((s) => window.openPool({}, s), `${site.appOrigin}/parts/workers/pool.js`);
    const { error } = await page.evaluate(() => window.client.call('echo', 1));
    assert.equal(error.code, 'CAPABILITY_UNAVAILABLE');
  });
});
