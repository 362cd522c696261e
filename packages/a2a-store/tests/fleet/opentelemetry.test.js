// What an agent reports arrives in the packages of OpenTelemetry: its API, and an SDK that keeps
// all in memory.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import * as api from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { memoryBackend, openTelemetry, taskStore } from '../../src/index.js';
import { VERSIONS, ask, deferred, serve } from '../../../a2a/tests/support/a2a.js';

const V1 = VERSIONS['1.0'];
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const headers = { ...V1.headers, traceparent: `00-${TRACE}-${PARENT}-01` };

const spans = new InMemorySpanExporter();
const tracing = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
api.propagation.setGlobalPropagator(new W3CTraceContextPropagator());
api.trace.setGlobalTracerProvider(tracing);
const metrics = new InMemoryMetricExporter(AggregationTemporality.DELTA);
const reader = new PeriodicExportingMetricReader({
  exporter: metrics,
  exportIntervalMillis: 2 ** 31 - 1,
});
const metering = new MeterProvider({ readers: [reader] });
api.metrics.setGlobalMeterProvider(metering);
after(() => Promise.all([tracing.shutdown(), metering.shutdown()]));

/** What was measured since the last time: the values of each metric, by the task's state. */
async function measured() {
  metrics.reset();
  await reader.forceFlush();
  const found = metrics
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap((scope) => scope.metrics);
  return Object.fromEntries(
    found.map(({ descriptor, dataPoints }) => [
      descriptor.name,
      Object.fromEntries(
        dataPoints.map(({ attributes, value }) => [
          attributes['a2a.task.state'] ?? '',
          /** @type {{ count?: number }} */ (value).count ?? value,
        ]),
      ),
    ]),
  );
}

for (const stored of [false, true])
  test(`spans continue the client's trace, and metrics are counted${stored ? ', in a store' : ''}`, async (t) => {
    spans.reset();
    const began = deferred();
    const store = stored && taskStore({ backend: memoryBackend() });
    const { url, close } = await serve(
      async ({ message: { parts }, signal }) => {
        const [{ text }] = parts;
        await new Promise(setImmediate);
        // A span of the executor's own belongs to its run.
        api.trace.getTracer('executor').startSpan(text).end();
        if (text === 'fail') throw new Error('broken');
        if (text !== 'wait') return;
        began.resolve();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
      { telemetry: openTelemetry(api), ...(store && { store }) },
    );
    t.after(close);
    t.mock.method(console, 'error', () => {});
    await measured();
    const send = (text, more) => ask(url, V1.send, { message: V1.message(text), ...more }, headers);
    await send('go');
    await send('fail');
    const waiting = await send('wait', { configuration: { returnImmediately: true } });
    const { id } = waiting.result.task;
    await began.promise;
    // Its end is not there yet, its beginning is.
    const ofTask = () =>
      spans
        .getFinishedSpans()
        .filter(({ attributes }) => attributes['a2a.task.id'] === id)
        .map(({ name }) => name);
    assert.deepEqual(ofTask(), ['a2a.execute.begin']);
    const running = await measured();
    assert.ok(running['a2a.tasks.live'][''] >= 1);
    assert.deepEqual(running['a2a.outbox'], { '': 0 });
    assert.deepEqual(running['a2a.streams'], { '': 0 });
    assert.deepEqual(running['a2a.tasks'], { working: 3, completed: 1, failed: 1 });
    await ask(url, V1.cancel, { id }, headers);
    const ends = () => spans.getFinishedSpans().filter(({ name }) => name === 'a2a.execute').length;
    while (ends() < 3) await new Promise(setImmediate);
    const all = spans.getFinishedSpans();
    const runs = all.filter(({ name }) => name === 'a2a.execute');
    assert.deepEqual(runs.map(({ attributes }) => attributes['a2a.task.state']).sort(), [
      'canceled',
      'completed',
      'failed',
    ]);
    for (const span of all.filter(({ name }) => name.startsWith('a2a.'))) {
      assert.equal(span.spanContext().traceId, TRACE);
      assert.equal(span.parentSpanContext?.spanId, PARENT);
    }
    for (const text of ['go', 'fail', 'wait']) {
      const own = all.find(({ name }) => name === text);
      const run = runs.find((one) => one.spanContext().spanId === own?.parentSpanContext?.spanId);
      assert.ok(run, `the span of ${text} is in its run`);
      const exceptions = run.events.map(({ attributes }) => attributes?.['exception.message']);
      assert.deepEqual(exceptions, text === 'fail' ? ['broken'] : []);
    }
    const ended = await measured();
    assert.deepEqual(ended['a2a.tasks'], { canceled: 1 });
    assert.deepEqual(ended['a2a.cancel.duration'], { canceled: 1 });
  });
