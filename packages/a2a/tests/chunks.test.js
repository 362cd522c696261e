// Executors that stream: what they yield are chunks of artifacts, in the words of each version.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTaskClient } from '../src/index.js';
import {
  VERSIONS,
  ask,
  deferred,
  updateOf,
  open,
  plainState,
  servingUntilEnd,
} from './support/a2a.js';

const served = servingUntilEnd();
const textOf = (parts) => parts.map(({ text }) => text);
/** What a frame says of an artifact, as the version spells it. */
const artifactUpdateOf = ({ result }) => result.artifactUpdate ?? result;
const artifactsOf = async (stream) => {
  const events = [];
  for await (const event of stream) {
    if (event.kind !== 'artifact') continue;
    const { artifact, append, lastChunk } = event;
    events.push([artifact.artifactId, textOf(artifact.parts).join(), append, lastChunk]);
  }
  return events;
};

describe('what an executor yields', () => {
  for (const [version, names] of Object.entries(VERSIONS)) {
    test(`${version}: is told at once, and the last has lastChunk`, async () => {
      const gates = [deferred(), deferred()];
      const { url } = await served(async function* () {
        yield 'a';
        await gates[0].promise;
        yield { text: 'b' };
        await gates[1].promise;
        return 'c';
      });
      const params = { message: names.message('go') };
      const stream = await open(url, names.stream, params, names.headers);
      const updates = [];
      for (let frame; (frame = await stream.next());) {
        if (!updateOf(frame).startsWith('artifact')) continue;
        const update = artifactUpdateOf(frame);
        updates.push(update);
        // The next is not made before this one is here.
        gates[updates.length - 1]?.resolve();
      }
      const [{ artifact }] = updates;
      const none = version === '1.0' ? undefined : false;
      assert.deepEqual(
        updates.map(({ append, lastChunk }) => [append, lastChunk]),
        [
          [none, none],
          [true, none],
          [true, true],
        ],
      );
      assert.deepEqual(
        updates.map(({ artifact: { artifactId, parts } }) => [artifactId, ...textOf(parts)]),
        ['a', 'b', 'c'].map((text) => [artifact.artifactId, text]),
      );
      const id = updates[0].taskId;
      const { result } = await ask(url, names.get, { id }, names.headers);
      assert.equal(plainState(result.status.state), 'completed');
      assert.deepEqual(textOf(result.artifacts[0].parts), ['a', 'b', 'c']);
      assert.equal(result.artifacts.length, 1);
    });
  }

  test('an artifact that says no end gets one, with an empty text', async () => {
    const { url } = await served(async function* () {
      yield { artifactId: 'x', parts: [{ text: 'x1' }], name: 'X' };
      yield { artifactId: 'y', parts: [{ text: 'y1' }], lastChunk: true };
      yield { artifactId: 'x', parts: [{ text: 'x2' }] };
    });
    const stream = createTaskClient(url).subscribe('go');
    assert.deepEqual(await artifactsOf(stream), [
      ['x', 'x1', false, false],
      ['y', 'y1', false, true],
      ['x', 'x2', true, false],
      ['x', '', true, true],
    ]);
    assert.deepEqual(
      stream.task.artifacts.map(({ name, parts }) => [name, textOf(parts).join('')]),
      [
        ['X', 'x1x2'],
        [undefined, 'y1'],
      ],
    );
  });

  test('may come from a ReadableStream; one that is empty makes no artifact', async () => {
    const { url } = await served(({ message }) =>
      ReadableStream.from(message.parts[0].text.split(' ').filter(Boolean)),
    );
    const client = createTaskClient(url);
    const { status, artifacts } = await client.send('one two');
    assert.equal(status.state, 'completed');
    assert.deepEqual(textOf(artifacts[0].parts), ['one', 'two', '']);
    assert.deepEqual((await client.send(' ')).artifacts, []);
  });

  test('is no chunk: the task fails, and the generator ends', async () => {
    const unwound = deferred();
    const { url } = await served(async function* () {
      try {
        yield 'a';
        yield 42;
      } finally {
        unwound.resolve();
      }
    });
    const stream = createTaskClient(url).subscribe('go');
    assert.deepEqual(
      (await artifactsOf(stream)).map(([, text, , lastChunk]) => [text, lastChunk]),
      [['a', false]],
    );
    assert.equal(stream.task.status.state, 'failed');
    await unwound.promise;
  });

  test('is too long for the task: it fails, and the generator ends', async () => {
    const unwound = deferred();
    const options = { limits: { maxTask: 4000 } };
    const { url } = await served(async function* () {
      try {
        for (;;) yield 'x'.repeat(500);
      } finally {
        unwound.resolve();
      }
    }, options);
    const task = await createTaskClient(url).send('go');
    assert.equal(task.status.state, 'failed');
    await unwound.promise;
  });

  test('in a second run goes on under an id that it names, and replaces what was there', async () => {
    const { url } = await served(async function* ({ message, emitStatus }) {
      const [{ text }] = message.parts;
      yield { artifactId: 'x', parts: [{ text }] };
      if (text === 'first') emitStatus('input-required', 'More?');
    });
    const client = createTaskClient(url);
    const { id, artifacts } = await client.send('first');
    assert.deepEqual(textOf(artifacts[0].parts), ['first']);
    const task = await client.send({ taskId: id, parts: [{ text: 'second' }] });
    assert.deepEqual(
      task.artifacts.map(({ parts }) => textOf(parts)),
      [['second', '']],
    );
  });
});

/** An executor whose chunks never end. `unwound` tells whether its signal had fired by the end. */
function endless(end = () => {}) {
  const unwound = deferred();
  const execute = async function* (ctx) {
    try {
      for (;;) yield 'more';
    } finally {
      end(ctx);
      unwound.resolve(ctx.signal.aborted);
    }
  };
  return { execute, unwound };
}

describe('a generator ends where it yields', () => {
  for (const grace of [0, 60_000]) {
    test(`when its task is cancelled, with a grace of ${grace} ms`, async () => {
      const { execute, unwound } = endless();
      const { url, agent } = await served(execute, { grace });
      const stop = new AbortController();
      const stream = createTaskClient(url).subscribe('go', { signal: stop.signal });
      let last;
      for await (const event of stream) {
        if (event.kind === 'artifact') {
          assert.equal(event.lastChunk, false);
          stop.abort('enough');
        }
        last = event;
      }
      assert.equal(last.status.state, 'canceled');
      assert.equal(await unwound.promise, true);
      while (agent.counters.live > 0) await new Promise((resolve) => setImmediate(resolve));
    });
  }

  test('and within the grace its finally may say that it has completed', async () => {
    const { execute, unwound } = endless(({ emitStatus }) => emitStatus('completed', 'Enough'));
    const { url } = await served(execute, { grace: 60_000 });
    const client = createTaskClient(url);
    const stream = client.subscribe('go');
    for await (const event of stream) {
      if (event.kind !== 'artifact') continue;
      await assert.rejects(client.cancel(event.taskId), { code: 'TASK_NOT_CANCELABLE' });
      break;
    }
    assert.equal(await unwound.promise, true);
    const [{ id }] = [stream.task];
    assert.equal((await client.get(id)).status.state, 'completed');
  });

  test('or returns: an artifact that a cancel cut off has no last chunk', async () => {
    const { url } = await served(
      async function* ({ signal }) {
        yield 'a';
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
      { grace: 60_000 },
    );
    const stop = new AbortController();
    const stream = createTaskClient(url).subscribe('go', { signal: stop.signal });
    const lasts = [];
    for await (const event of stream) {
      if (event.kind !== 'artifact') continue;
      lasts.push(event.lastChunk);
      stop.abort();
    }
    assert.deepEqual([stream.task.status.state, lasts], ['canceled', [false]]);
  });

  test('when it has ended its task itself', async () => {
    const { url } = await served(async function* ({ emitStatus }) {
      try {
        yield 'a';
        emitStatus('completed');
        for (;;) yield 'b';
      } finally {
        unwound.resolve();
      }
    });
    const unwound = deferred();
    const task = await createTaskClient(url).send('go');
    assert.equal(task.status.state, 'completed');
    assert.deepEqual(textOf(task.artifacts[0].parts), ['a']);
    await unwound.promise;
  });

  test('when the agent closes', async () => {
    const { execute, unwound } = endless();
    const { url, agent } = await served(execute);
    const stream = createTaskClient(url).subscribe('go');
    await stream.next();
    agent.close();
    assert.equal(await unwound.promise, true);
    await stream.return();
  });
});

test('a generator whose task was cancelled before it began does nothing', async () => {
  let ran = 0;
  const gate = deferred();
  const returned = deferred();
  const { url } = await served(async ({ message }) => {
    if (message.parts[0].text === 'go') {
      await gate.promise;
      returned.resolve();
    }
    return (async function* () {
      ran++;
      yield 'a';
    })();
  });
  const client = createTaskClient(url);
  // What reads generators is there once one was read.
  await client.send('first');
  const stream = client.subscribe('go');
  const { value } = await stream.next();
  await client.cancel(value.task.id);
  gate.resolve();
  await returned.promise;
  await client.send('last');
  assert.equal(ran, 2);
  await stream.return();
});
