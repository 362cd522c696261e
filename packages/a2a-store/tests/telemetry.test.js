// Metrics and traces go to OpenTelemetry's API, of which this is what an agent uses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTaskServer } from '@abp-bridge/a2a';
import { memoryBackend, openTelemetry, taskStore } from '../src/index.js';
import { VERSIONS, ask, deferred, serve } from '../../a2a/tests/support/a2a.js';

const V1 = VERSIONS['1.0'];

function fakeApi() {
  const seen = { spans: [], counts: [], gauges: new Map() };
  const count = (name) => ({
    add: (by, attributes) => seen.counts.push([name, by, attributes]),
    record: (value, attributes) => seen.counts.push([name, typeof value, attributes]),
  });
  const api = {
    context: { active: () => ({}), with: (_context, run) => run() },
    propagation: { extract: (_context, { traceparent }) => ({ traceparent }) },
    trace: {
      setSpan: (context) => context,
      getTracer: () => ({
        startSpan(name, { attributes }, parent) {
          const span = { name, attributes, parent: parent.traceparent, ended: false };
          seen.spans.push(span);
          return {
            setAttribute: (key, value) => (span.attributes[key] = value),
            recordException: (error) => (span.error = error.message),
            end: () => (span.ended = true),
          };
        },
      }),
    },
    metrics: {
      getMeter: () => ({
        createCounter: count,
        createHistogram: count,
        createObservableGauge: (name) => ({
          addCallback: (callback) => seen.gauges.set(name, callback),
        }),
      }),
    },
  };
  const gauge = (name) => {
    let value;
    seen.gauges.get(name)({ observe: (observed) => (value = observed) });
    return value;
  };
  return { api, seen, gauge };
}

for (const stored of [false, true])
  test(`each run is a span that says that it began${stored ? ', in a store' : ''}; ends and cancels are counted`, async (t) => {
    const { api, seen, gauge } = fakeApi();
    const store = stored && taskStore({ backend: memoryBackend() });
    const began = deferred();
    const { url, close } = await serve(
      ({ message, signal }) => {
        if (message.parts[0].text === 'fail') throw new Error('broken');
        if (message.parts[0].text !== 'wait') return undefined;
        began.resolve();
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
      },
      { telemetry: openTelemetry(api), ...(store && { store }) },
    );
    t.after(close);
    t.mock.method(console, 'error', () => {});
    const headers = { ...V1.headers, traceparent: '00-1-2-01' };
    const send = (text, more) => ask(url, V1.send, { message: V1.message(text), ...more }, headers);
    await send('go');
    await send('fail');
    const waiting = await send('wait', { configuration: { returnImmediately: true } });
    await began.promise;
    assert.equal(gauge('a2a.tasks.live') > 0, true);
    assert.equal(gauge('a2a.outbox'), 0);
    await ask(url, V1.cancel, { id: waiting.result.task.id }, headers);
    assert.deepEqual(
      seen.spans.map(({ name, parent }) => [name, parent]),
      Array.from({ length: 3 }, () => ['a2a.execute.begin', 'a2a.execute'])
        .flat()
        .map((name) => [name, '00-1-2-01']),
    );
    assert.equal(seen.spans[3].error, 'broken');
    assert.equal(seen.spans[4].ended, true);
    const ends = seen.counts.filter(([name]) => name === 'a2a.tasks');
    assert.deepEqual(
      ends.map(([, , attributes]) => attributes['a2a.task.state']),
      ['working', 'completed', 'working', 'failed', 'working', 'canceled'],
    );
    assert.deepEqual(
      seen.counts.find(([name]) => name === 'a2a.cancel.duration'),
      ['a2a.cancel.duration', 'number', { 'a2a.task.state': 'canceled' }],
    );
  });

test('tasks that a later version has stored are counted', async (t) => {
  const { api, seen } = fakeApi();
  const backend = memoryBackend();
  const store = taskStore({ backend });
  const { url, close } = await serve(() => {}, { telemetry: openTelemetry(api), store });
  t.after(close);
  t.mock.method(console, 'error', () => {});
  await backend.append('later', JSON.stringify({ v: 2 }), 0);
  for (let i = 0; i < 2; i++)
    assert.ok((await ask(url, V1.get, { id: 'later' }, V1.headers)).error);
  const counted = seen.counts.filter(([name]) => name === 'a2a.tasks.unreadable');
  assert.deepEqual(
    counted.map(([, by]) => by),
    [1, 1],
  );
});

test('what is no API is refused', () => {
  assert.throws(() => openTelemetry({}), { code: 'INVALID_PARAMS' });
  const agent = { card: { name: 'x' }, execute: () => {} };
  assert.throws(() => createTaskServer(agent, { telemetry: {} }), { code: 'INVALID_PARAMS' });
});
