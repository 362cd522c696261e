// What became of the work of a task that did not complete, on the wire of every version and as a
// client reads it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTaskClient, createTaskServer } from '../src/index.js';
import { SOURCES } from '../../../tests/support/stopped-sources.js';
import { VERSIONS, ask, deferred, open, serve } from './support/a2a.js';

const aborted = (signal) => new Promise((resolve) => signal.addEventListener('abort', resolve));
const abortError = () => new DOMException('stopped', 'AbortError');

/** What an executor does once it is to stop, and what that is called. */
const ENDS = {
  stopped: () => {
    throw abortError();
  },
  finished: () => {},
  failed: () => {
    throw new TypeError('expected in this test');
  },
};

for (const version of ['1.0', '0.3', 'gem']) {
  const { headers, send, get, cancel, list, message, stream } = VERSIONS[version];
  const statusOf = ({ result }) => (result.task ?? result.statusUpdate ?? result).status;
  const metadataOf = (answer) => statusOf(answer).message?.metadata;

  describe(`over ${version}`, () => {
    /** A task whose executor runs. */
    async function begin(t, execute, options) {
      const { agent, url, close } = await serve(execute, options);
      t.after(close);
      const events = await open(url, stream, { message: message('go') }, headers);
      const first = (await events.next()).result;
      const id = first.task?.id ?? first.taskId ?? first.id;
      const asked = (method, params = { id }) => ask(url, method, params, headers);
      return { agent, events, id, asked };
    }

    for (const [outcome, end] of Object.entries(ENDS)) {
      test(`an executor that has ${outcome} within its grace says so with the end of its task`, async (t) => {
        t.mock.method(console, 'error', () => {});
        const { events, asked } = await begin(
          t,
          async ({ signal, report, emitStatus }) => {
            emitStatus('working', 'page 1 of 40');
            emitStatus('working', 'page 12 of 40');
            report({ applied: 11 });
            report({ applied: 12, remaining: 28 });
            await aborted(signal);
            return end();
          },
          { grace: 60_000 },
        );
        const answer = await asked(cancel);
        const expected = {
          outcome,
          report: { applied: 12, remaining: 28 },
          progress: { message: 'page 12 of 40' },
        };
        assert.match(statusOf(answer).state, /canceled/i);
        assert.deepEqual(metadataOf(answer), expected);
        assert.deepEqual(metadataOf((await events.rest()).at(-1)), expected);
        assert.deepEqual(metadataOf(await asked(get)), expected);
        if (list && version === '1.0')
          assert.deepEqual(
            (await asked(list, {})).result.tasks[0].status.message.metadata,
            expected,
          );
      });

      test(`one that had not returned in time is running, and who asks later is told that it has ${outcome}`, async (t) => {
        t.mock.method(console, 'error', () => {});
        const go = deferred();
        const returned = deferred();
        const { agent, events, asked } = await begin(
          t,
          async ({ report }) => {
            await go.promise;
            report({ applied: 40 });
            returned.resolve();
            return end();
          },
          { grace: 1 },
        );
        const answer = await asked(cancel);
        assert.deepEqual(metadataOf(answer), { outcome: 'running' });
        assert.deepEqual(metadataOf((await events.rest()).at(-1)), { outcome: 'running' });
        assert.deepEqual(metadataOf(await asked(get)), { outcome: 'running' });
        go.resolve();
        await returned.promise;
        while (agent.counters.live) await new Promise(setImmediate);
        const later = await asked(get);
        assert.match(statusOf(later).state, /canceled/i);
        assert.deepEqual(metadataOf(later), { outcome, report: { applied: 40 } });
      });
    }

    test('a task that is canceled while it waits for an answer has stopped', async (t) => {
      const { events, asked } = await begin(t, ({ emitStatus }) => emitStatus('input-required'));
      await events.rest();
      assert.deepEqual(metadataOf(await asked(cancel)), { outcome: 'stopped' });
    });

    test('a task that fails by itself has failed', async (t) => {
      const { url, close } = await serve(async ({ report }) => {
        report({ applied: 1 });
        throw abortError();
      });
      t.after(close);
      const answer = await ask(url, send, { message: message('go') }, headers);
      assert.match(statusOf(answer).state, /failed/i);
      // The gem's messages are plain texts.
      if (version === 'gem') assert.equal(typeof statusOf(answer).message, 'string');
      else assert.deepEqual(metadataOf(answer), { outcome: 'failed', report: { applied: 1 } });
    });

    for (const outcome of ['unknown', 'running']) {
      const thrown = (error = new Error('expected in this test')) =>
        Object.assign(error, { outcome });

      test(`of a task that fails by a call that is ${outcome}, nobody knows what became`, async (t) => {
        t.mock.method(console, 'error', () => {});
        const { url, close } = await serve(async ({ report }) => {
          report({ applied: 1 });
          throw thrown();
        });
        t.after(close);
        const answer = await ask(url, send, { message: message('go') }, headers);
        assert.match(statusOf(answer).state, /failed/i);
        // The gem's messages are plain texts.
        if (version === 'gem') return;
        assert.deepEqual(metadataOf(answer), { outcome: 'unknown', report: { applied: 1 } });
      });

      for (const [when, grace] of [
        ['within its grace', 60_000],
        ['too late', 1],
      ])
        test(`nor of one that is canceled, and ends by such a call ${when}`, async (t) => {
          t.mock.method(console, 'error', () => {});
          const go = deferred();
          const { agent, asked } = await begin(
            t,
            async ({ signal }) => {
              await (grace > 1 ? aborted(signal) : go.promise);
              throw thrown(abortError());
            },
            { grace },
          );
          const answer = await asked(cancel);
          assert.match(statusOf(answer).state, /canceled/i);
          if (grace > 1) return assert.deepEqual(metadataOf(answer), { outcome: 'unknown' });
          go.resolve();
          while (agent.counters.live) await new Promise(setImmediate);
          assert.deepEqual(metadataOf(await asked(get)), { outcome: 'unknown' });
        });
    }

    test('a task that completes says nothing of it', async (t) => {
      const { url, close } = await serve(({ report }) => report({ applied: 1 }));
      t.after(close);
      const answer = await ask(url, send, { message: message('go') }, headers);
      assert.match(statusOf(answer).state, /completed/i);
      assert.equal(statusOf(answer).message, undefined);
    });

    test('an executor that passes on what it was told says so itself', async (t) => {
      const { asked } = await begin(
        t,
        async ({ signal, emitStatus }) => {
          await aborted(signal);
          const metadata = { outcome: 'finished', theirs: 1 };
          emitStatus('canceled', { parts: [{ text: 'too late' }], metadata });
        },
        { grace: 60_000 },
      );
      assert.deepEqual(metadataOf(await asked(cancel)), { outcome: 'finished', theirs: 1 });
    });
  });
}

describe('an executor that streams', () => {
  for (const [what, { outcome, make }] of Object.entries(SOURCES))
    for (const [way, stop] of Object.entries({
      'its signal': ({ controller }) => controller.abort(),
      'cancel(id)': ({ client, id }) => void client.cancel(id),
    }))
      test(`${what}, by ${way}: ${outcome}`, async (t) => {
        t.mock.method(console, 'error', () => {});
        const { url, close } = await serve(({ signal }) => make(signal), { grace: 60_000 });
        t.after(close);
        const client = createTaskClient(url, { version: '1.0' });
        const controller = new AbortController();
        const stream = client.subscribe('go', { signal: controller.signal });
        let artifacts = 0;
        for await (const event of stream)
          if (event.kind === 'artifact' && ++artifacts === 1)
            stop({ controller, client, id: stream.task.id });
        assert.equal(stream.task.status.state, 'canceled');
        assert.equal(stream.task.status.outcome, outcome);
        assert.equal((await client.get(stream.task.id)).status.outcome, outcome);
      });
});

test('a message that takes over has its own outcome: what the run before it reported is not told', async (t) => {
  t.mock.method(console, 'error', () => {});
  const { url, close } = await serve(({ message, report, emitStatus }) => {
    if (message.parts[0].text === 'go') {
      report({ applied: 1 });
      emitStatus('input-required');
    } else throw new Error('expected in this test');
  });
  t.after(close);
  const client = createTaskClient(url, { version: '1.0' });
  const { id } = await client.send('go');
  const { status } = await client.send({ parts: [{ text: 'on' }], taskId: id });
  assert.deepEqual([status.outcome, status.report], ['failed', undefined]);
});

describe('a report', () => {
  for (const [what, report] of [
    ['larger than 4 KB', { applied: 'x'.repeat(4096) }],
    ['that is not JSON', undefined],
    ['that cannot be printed', 1n],
  ])
    test(`${what} is not kept, nor is the one before it`, async (t) => {
      const error = t.mock.method(console, 'error', () => {});
      const { url, close } = await serve((context) => {
        context.report({ applied: 1 });
        context.report(report);
        context.emitStatus('failed');
      });
      t.after(close);
      const { status } = await createTaskClient(url, { version: '1.0' }).send('go');
      assert.deepEqual([status.outcome, 'report' in status], ['failed', false]);
      assert.match(error.mock.calls[0].arguments[0], /execute: a report is JSON of at most 4 KB/);
    });
});

describe('a client', () => {
  /** A client of an agent that answers every request with a task in this status. */
  const clientOf = (status) =>
    createTaskClient('https://agent.example/', {
      version: '1.0',
      fetch: async () => {
        const result = { id: '1', contextId: '2', status };
        return new Response(JSON.stringify({ jsonrpc: '2.0', id: 1, result }), {
          headers: { 'content-type': 'application/json' },
        });
      },
    });
  const message = (metadata) => ({
    messageId: 'm',
    role: 'ROLE_AGENT',
    parts: [{ text: 'x' }],
    metadata,
  });

  for (const [state, metadata, outcome] of [
    ['CANCELED', undefined, 'unknown'],
    ['CANCELED', { outcome: 'running' }, 'running'],
    ['CANCELED', { outcome: 'whatever' }, 'unknown'],
    ['CANCELED', { outcome: '' }, 'unknown'],
    ['FAILED', undefined, 'failed'],
    ['FAILED', { outcome: 'unknown' }, 'unknown'],
    ['REJECTED', {}, 'failed'],
    ['COMPLETED', { outcome: 'failed' }, undefined],
    ['WORKING', { outcome: 'failed' }, undefined],
  ])
    test(`reads ${state} with ${JSON.stringify(metadata)} as ${outcome}`, async () => {
      const status = { state: `TASK_STATE_${state}`, message: message(metadata) };
      assert.equal((await clientOf(status).get('1')).status.outcome, outcome);
      if (metadata) return;
      const silent = await clientOf({ state: `TASK_STATE_${state}` }).get('1');
      assert.equal(silent.status.outcome, outcome);
    });

  test('hands on a report and progress, whatever these are', async () => {
    const metadata = { outcome: 'stopped', report: [1], progress: { message: 'x' } };
    const status = { state: 'TASK_STATE_CANCELED', message: message(metadata) };
    const { outcome, report, progress } = (await clientOf(status).get('1')).status;
    assert.deepEqual({ outcome, report, progress }, metadata);
    const odd = { ...metadata, progress: 'x', report: null };
    const read = (await clientOf({ ...status, message: message(odd) }).get('1')).status;
    assert.deepEqual([read.report, read.progress], [null, undefined]);
  });
});

/** An agent over a transport whose other end a test plays: what that sends is read at once. */
function played(execute, options) {
  const agent = createTaskServer({ card: { name: 'x' }, execute }, options);
  const { stream, message } = VERSIONS['1.0'];
  let onTaskId = () => {};
  let status;
  const transport = {
    post({ result: { result } = {} }) {
      const { id, status: shown } = result?.task ?? result?.statusUpdate ?? {};
      status = shown ?? status;
      if (id) onTaskId(id);
    },
    close() {},
  };
  agent.serve(transport);
  const ask = (method, params) => {
    const request = { jsonrpc: '2.0', id: method, method, params };
    transport.onMessage({ type: 'a2a/request', stream: method, version: '1.0', request });
  };
  const begun = new Promise((resolve) => (onTaskId = resolve));
  ask(stream, { message: message('go') });
  return { agent, ask, begun, last: () => status };
}

/**
 * Executors that work until they are told to stop.
 * @type {Record<string, (begin: () => void) => any>}
 */
const WORKS = {
  'a function': (begin) => async (context) => {
    begin();
    if (!context.signal.aborted) await aborted(context.signal);
    throw abortError();
  },
  'a generator': (begin) =>
    async function* ({ signal }) {
      begin();
      if (!signal.aborted) await aborted(signal);
      yield 'the end';
    },
  'a generator that does not wait': (begin) =>
    function* () {
      begin();
      for (;;) yield 'more';
    },
};

for (const [what, make] of Object.entries(WORKS))
  for (const grace of [0, 60_000])
    for (const [end, act] of Object.entries({
      'is canceled': ({ ask }, id) => ask(VERSIONS['1.0'].cancel, { id }),
      'ends with its agent': ({ agent }) => agent.close(),
    }))
      test(`a task of ${what}, with ${grace} ms of grace, ${end} at any moment: unstarted, if no line of it ran`, async () => {
        const words = new Set();
        for (let moment = 0; moment < 24; moment++) {
          let runs = 0;
          const one = played(
            make(() => runs++),
            { grace },
          );
          const id = await one.begun;
          for (let i = 0; i < moment; i++) await undefined;
          act(one, id);
          while (one.agent.counters.live) await new Promise(setImmediate);
          one.agent.close();
          const { state, message } = one.last();
          assert.equal(state, 'TASK_STATE_CANCELED');
          const { outcome } = message.metadata;
          words.add(outcome);
          assert.equal(outcome === 'unstarted', !runs, `${outcome} after ${moment} microtasks`);
        }
        // A request takes longer than a function takes to begin.
        const isLate = what === 'a function' && end === 'is canceled';
        assert.equal(words.has('unstarted'), !isLate);
        assert.ok(words.size > 1 || isLate, [...words].join());
      });

test('an agent that is closed says that its executors still run', async () => {
  const agent = createTaskServer({ card: { name: 'x' }, execute: () => new Promise(() => {}) });
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: { message: VERSIONS['1.0'].message('go') },
  };
  const request = new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify(body),
  });
  const answer = agent.fetch(request);
  while (agent.counters.live !== 1) await new Promise(setImmediate);
  agent.close();
  const { status } = (await (await answer).json()).result.task;
  assert.deepEqual(status.message.metadata, { outcome: 'running' });
});
