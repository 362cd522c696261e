// The messages of a turn go together, in one frame. Where a transport cannot send them together,
// each call ends by what becomes of its own message. What a transport refuses is its own affair:
// one that writes JSON takes no BigInt, which a MessagePort does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { AGENT, APP, closeAfter } from '../support/pair.js';

/**
 * A client of an app, over a transport of a user's.
 * @param {(message: unknown) => unknown} write makes what arrives of a message, or throws
 */
async function openOver(write) {
  const ends = [0, 1].map(() => ({ onMessage() {}, close() {} }));
  ends.forEach((end, i) => {
    end.post = (message) => {
      const written = write(message);
      setImmediate(() => ends[1 - i].onMessage(written, []));
    };
  });
  const app = expose(
    {
      app: APP,
      capabilities: {
        echo: (params) => params,
        counts: () => ({ count: 5n }),
        *streams() {
          for (let i = 0; i < 6; i++) yield i === 3 ? 3n : i;
        },
      },
    },
    { origins: [] },
  );
  app.accept(ends[1]);
  const client = await connect(ends[0], { agent: AGENT });
  closeAfter(() => app.close());
  closeAfter(() => client.close());
  assert.equal(client.features.frames, true);
  return client;
}

test('what cannot be written costs none of those that went with it', async () => {
  const client = await openOver((message) => JSON.parse(JSON.stringify(message)));
  const params = [0, 1n, 2, 3n, 4].map((value) => ({ value }));
  const calls = [...params.map((each) => client.call('echo', each)), client.call('counts')];
  const told = (await Promise.all(calls)).map(({ data, error, metadata }) =>
    data ? data.value : [error.code, metadata.outcome],
  );
  const unsent = ['INVALID_PARAMS', 'unstarted'];
  assert.deepEqual(told, [0, unsent, 2, unsent, 4, ['OPERATION_FAILED', 'finished']]);
});

test('each call ends if a transport takes nothing any more, also those that went as one text', async () => {
  let isBroken = false;
  const client = await openOver((message) => {
    if (isBroken) throw new Error('it is broken');
    return structuredClone(message);
  });
  assert.equal(client.features.text, true);
  isBroken = true;
  const calls = [1, 2, 3, new Map(), 5].map((value) => client.call('echo', { value }));
  for (const { error, metadata } of await Promise.all(calls)) {
    assert.deepEqual([error.code, metadata.outcome], ['INVALID_PARAMS', 'unstarted']);
    assert.match(error.message, /it is broken/);
  }
});

test('a stream ends with the chunk that could not be sent: none comes after it', async () => {
  const client = await openOver((message) => JSON.parse(JSON.stringify(message)));
  const chunks = [];
  const reading = async () => {
    for await (const chunk of client.stream('streams')) chunks.push(chunk);
  };
  await assert.rejects(reading, /A chunk cannot be sent/);
  assert.deepEqual(chunks, [0, 1, 2]);
});

test('a refusal that could not be sent once says all the same that nothing has begun', async () => {
  let left = 0;
  const client = await openOver((message) => {
    if (left-- > 0) throw new Error('it is broken');
    return structuredClone(message);
  });
  const calling = client.call('unknown');
  left = 2;
  const { metadata } = await calling;
  assert.equal(metadata.outcome, 'unstarted');
});
