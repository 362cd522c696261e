/** Streams at any process: all events, from any number, within bounded memory. */
import assert from 'node:assert/strict';
import { createTaskClient } from '@abp-bridge/a2a';
import { ask, deferred, updateOf, open, stateOf } from '../../../../a2a/tests/support/a2a.js';
import { V1, send, get, returnImmediately, testsOver } from './processes.js';

/** @type {import('../store.js').StoreTests} */
export function testStreams(name, openBackend) {
  const it = testsOver(name, openBackend);

  it('a subscription at another process has all events, and ends with the task', async (t, start) => {
    const go = deferred();
    const { urls } = await start(async (context) => {
      await go.promise;
      for (let i = 0; i < 5; i++)
        context.emitArtifact({ artifactId: `step-${i}`, parts: [{ text: `${i}` }] });
    });
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const there = await open(urls[1], V1.resubscribe, { id }, V1.headers);
    const first = await there.next();
    assert.equal(updateOf(first), 'task working');
    go.resolve();
    assert.deepEqual((await there.rest()).map(updateOf), [
      ...[0, 1, 2, 3, 4].map((i) => `artifact step-${i}`),
      'completed',
    ]);
  });

  it('a stream is resumed from any event id, at any process, without gap or repeat', async (t, start) => {
    const gates = [deferred(), deferred()];
    const { urls } = await start(
      async (context) => {
        const emit = (text) =>
          context.emitArtifact({ artifactId: 'a', parts: [{ text }] }, { append: true });
        // What is emitted at once may share a record.
        for (let i = 0; i < 5; i++) emit(`${i}`);
        emit('x'.repeat(1_100_000));
        await gates[0].promise;
        emit('5');
        await context.flushed();
        context.emitStatus('working', 'half');
        await gates[1].promise;
        emit('6');
      },
      { maxUnread: 16 << 20 },
    );
    const what = ({ result }) =>
      result.artifactUpdate?.artifact.parts[0].text.slice(0, 3) ?? updateOf({ result });
    const numberOf = ({ raw }) => /^id: (.*)$/m.exec(raw)?.[1];
    const params = { message: V1.message('go') };
    const whole = await open(urls[0], V1.stream, params, V1.headers);
    const frames = [];
    const until = async (last) => {
      while (frames.length === 0 || what(frames.at(-1)) !== last) frames.push(await whole.next());
    };
    await until('xxx');
    const { id } = frames[0].result.task;
    const from = (number, url) =>
      open(url, V1.resubscribe, { id }, { ...V1.headers, 'last-event-id': number });
    const early = [];
    for (const [i, frame] of frames.entries())
      early.push([i, await from(numberOf(frame), urls[i % 2])]);
    gates[0].resolve();
    await until('working');
    const middle = await from(numberOf(frames[2]), urls[1]);
    gates[1].resolve();
    frames.push(...(await whole.rest()));
    assert.equal(what(frames.at(-1)), 'completed');
    const numbered = frames.map((frame) => [numberOf(frame), what(frame)]);
    assert.equal(new Set(numbered.map(([number]) => number)).size, frames.length);
    const after = (i) => numbered.slice(i + 1);
    const rest = async (stream) =>
      (await stream.rest()).map((frame) => [numberOf(frame), what(frame)]);
    for (const [i, stream] of early) assert.deepEqual(await rest(stream), after(i), `${i}`);
    assert.deepEqual(await rest(middle), after(2));
    // Of a task that has ended, too, as long as something came after.
    for (const [i, frame] of frames.entries()) {
      if (i === frames.length - 1) break;
      assert.deepEqual(await rest(await from(numberOf(frame), urls[i % 2])), after(i), `${i}`);
    }
    const nothing = { ...V1.headers, 'last-event-id': numberOf(frames.at(-1)) };
    assert.equal((await ask(urls[1], V1.resubscribe, { id }, nothing)).error.code, -32004);
  });

  it('a resubscription with an unknown event id begins with the task', async (t, start) => {
    const go = deferred();
    const { urls } = await start(
      async (context) => {
        context.emitArtifact({ artifactId: 'a', parts: [{ text: 'x'.repeat(30_000) }] });
        await go.promise;
      },
      { maxUnread: 100_000 },
    );
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    let seen = await open(urls[1], V1.resubscribe, { id }, V1.headers);
    const [, first] = /^id: (.*)$/m.exec((await seen.next()).raw);
    seen.leave();
    const [seq, place] = first.split('.').map(Number);
    for (const number of ['0', 'x', '1', '0.0', `${seq}.${place + 1000}`, '999999.0', '1.9999']) {
      const headers = { ...V1.headers, 'last-event-id': number };
      const stream = await open(urls[0], V1.resubscribe, { id }, headers);
      assert.match(updateOf(await stream.next()), /^task/, number);
      stream.leave();
    }
    go.resolve();
    do seen = await get(urls[1], id);
    while (stateOf(seen) !== 'completed');
    // One that has ended has no stream.
    const headers = { ...V1.headers, 'last-event-id': '999999.0' };
    assert.equal((await ask(urls[1], V1.resubscribe, { id }, headers)).error.code, -32004);
  });

  it('a reader receives all events after an event id, as fast as it reads', async (t, start) => {
    const go = deferred();
    // More than may wait for a reader of a stream.
    const { urls, agents, backend } = await start(
      async (context) => {
        for (let i = 0; i < 60; i++) {
          const artifactId = `${i % 7}`;
          const length = i === 30 ? 1_100_000 : i % 3 ? 200 : 120_000;
          context.emitArtifact({ artifactId, parts: [{ text: `${i} `.padEnd(length, 'x') }] });
          if (i % 10 === 0) await context.flushed();
        }
        await go.promise;
      },
      { maxUnread: 300_000 },
    );
    const what = (frame) => {
      const { artifactUpdate } = frame.result ?? frame;
      return artifactUpdate?.artifact.parts[0].text ?? updateOf({ result: frame.result ?? frame });
    };
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const from = (number, url) =>
      open(url, V1.resubscribe, { id }, { ...V1.headers, 'last-event-id': number });
    // While it works, and its last artifact has been stored.
    let working;
    do working = (await get(urls[1], id)).result;
    while (!(working.artifacts ?? []).some(({ parts }) => parts[0].text.startsWith('59 ')));
    const [{ seq }] = await backend.read(id, 0, 1);
    const data = `${seq}.0`;
    const live = await from(data, urls[1]);
    const read = [];
    while (read.length < 61) read.push(await live.next());
    go.resolve();
    read.push(...(await live.rest()));
    const updates = read.map(what);
    assert.deepEqual(
      updates.map((text) => text.split(' ')[0]),
      ['working', ...Array.from({ length: 60 }, (_, i) => `${i}`), 'completed'],
    );
    assert.ok(JSON.stringify(read).length > 3_000_000);
    // When it has ended, in both bindings, and by a reader that takes its time.
    for (const [i, url] of urls.entries()) {
      assert.deepEqual((await (await from(data, url)).rest()).map(what), updates);
      const headers = { ...V1.headers, 'last-event-id': data };
      const answer = await fetch(new URL(`tasks/${id}:subscribe`, url), { headers });
      assert.equal(answer.status, 200);
      const text = await answer.text();
      const frames = [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json));
      assert.deepEqual(frames.map(what), updates);
      const written = [];
      agents[i].http.prependListener('request', (_request, response) => written.push(response));
      const slow = await from(data, url);
      slow.response.pause();
      const [response] = written;
      // It stands still when the connection has taken what it can, if that is less than all.
      for (let still = 0; still < 300 && !response.writableEnded; still++) {
        await new Promise(setImmediate);
        assert.ok(response.writableLength < 1_500_000, `${response.writableLength} bytes wait`);
        if (!response.writableNeedDrain) still = 0;
      }
      assert.deepEqual((await slow.rest()).map(what), updates);
    }
    // Of what is not read little is in memory, and little was read from the log.
    let chars = 0;
    const readLog = backend.read.bind(backend);
    backend.read = async (...args) => {
      const found = await readLog(...args);
      for (const record of found) chars += record.data.length;
      return found;
    };
    const asked = new Request(`http://agent/tasks/${id}:subscribe`, {
      headers: { ...V1.headers, 'last-event-id': data },
    });
    const reader = (await agents[1].agent.fetch(asked)).body.getReader();
    for (let i = 0; i < 500; i++) await new Promise(setImmediate);
    assert.ok(chars < 1_500_000, `${chars} characters were read`);
    let text = '';
    const decoder = new TextDecoder();
    for (let next; !(next = await reader.read()).done;)
      text += decoder.decode(next.value, { stream: true });
    const shown = [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => what(JSON.parse(json)));
    assert.deepEqual(shown, updates);
    backend.read = readLog;
    // One of it is the last.
    const numbers = read.map(({ raw }) => /^id: (.*)$/m.exec(raw)[1]);
    for (const i of [0, 29, 30, 31, 32, 60])
      assert.deepEqual(
        (await (await from(numbers[i], urls[i % 2])).rest()).map(what),
        updates.slice(i + 1),
      );
  });

  it('nothing more is read for a reader that has left', async (t, start) => {
    let reads = 0;
    const { urls, agents, backend } = await start((context) => {
      for (let i = 0; i < 200; i++)
        context.emitArtifact({ artifactId: `${i % 5}`, parts: [{ text: `${i}`.padEnd(60_000) }] });
    });
    const { id } = (await send(urls[0], 'go')).result.task;
    const read = backend.read.bind(backend);
    backend.read = (...args) => {
      reads++;
      return read(...args);
    };
    const written = [];
    agents[1].http.prependListener('request', (_request, response) => written.push(response));
    const first = `${(await read(id, 0, 1))[0].seq}.0`;
    const headers = { ...V1.headers, 'last-event-id': first };
    const stream = await open(urls[1], V1.resubscribe, { id }, headers);
    await stream.next();
    stream.leave();
    const closed = new Promise((resolve) => written[0].once('close', resolve));
    if (!written[0].destroyed) await closed;
    for (let i = 0; i < 20; i++) await new Promise(setImmediate);
    const before = reads;
    for (let i = 0; i < 100; i++) await new Promise(setImmediate);
    assert.equal(reads, before);
  });

  it('our client resumes from the last event id that it received', async (t, start) => {
    const go = deferred();
    const { urls } = await start(async (context) => {
      for (let i = 0; i < 3; i++)
        context.emitArtifact({ artifactId: 'a', parts: [{ text: `${i}` }] }, { append: true });
      await go.promise;
      context.emitArtifact({ artifactId: 'a', parts: [{ text: '3' }] }, { append: true });
    });
    let turn = 0;
    const asked = [];
    const cuts = [];
    /** Each request goes to the next process, and a stream can be cut. */
    const balanced = async (_url, init) => {
      const { method } = JSON.parse(init.body);
      asked.push([method, new Headers(init.headers).get('last-event-id') !== null]);
      const answer = await fetch(urls[turn++ % urls.length], init);
      const reader = answer.body.getReader();
      const body = new ReadableStream({
        start: (controller) => cuts.push(() => controller.error(new Error('cut'))),
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        },
      });
      return new Response(body, answer);
    };
    const client = createTaskClient(urls[0], {
      version: '1.0',
      fetch: balanced,
      limits: { retry: 1 },
    });
    const stream = client.subscribe('go');
    const seen = [];
    for await (const event of stream) {
      seen.push(event.kind === 'artifact' ? event.artifact.parts[0].text : event.kind);
      if (seen.at(-1) === '1') cuts[0]();
      if (seen.at(-1) === '2') go.resolve();
    }
    assert.deepEqual(seen, ['task', 'status', '0', '1', '2', '3', 'status']);
    assert.deepEqual(asked, [
      [V1.stream, false],
      [V1.resubscribe, true],
    ]);
    assert.deepEqual(
      stream.task.artifacts[0].parts.map(({ text }) => text),
      ['0', '1', '2', '3'],
    );
    // Another client, which has kept the number, is told what has come since.
    const other = client.resubscribe(stream.task.id, { lastEventId: '1.0' });
    assert.equal((await other.next()).value.status.state, 'working');
    await other.return();
  });
}
