// What a consumer of NATS brings, put in order; tests/fleet has real servers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Feed } from '../src/nats-feed.js';
import { deferred } from '../../a2a/tests/support/a2a.js';

const messageOf = (seq) => ({ seq, subject: 's', data: new Uint8Array() });

/** A feed after message 10, what it gives, and what it asks for. */
function feedOf(answer = async (seq) => messageOf(seq)) {
  const given = [];
  const asked = [];
  let more = deferred();
  const feed = new Feed(
    10,
    (seq) => {
      asked.push(seq);
      return answer(seq);
    },
    ({ seq }) => {
      given.push(seq);
      more.resolve();
    },
  );
  const until = async (count) => {
    while (given.length < count) {
      more = deferred();
      await more.promise;
    }
  };
  return { feed, given, asked, until };
}

const take = (feed, ...numbers) => numbers.forEach((seq) => feed.take(messageOf(seq)));

test('what comes in order is given at once, and once', () => {
  const { feed, given, asked } = feedOf();
  take(feed, 9, 10, 11, 12, 12, 11, 13);
  assert.deepEqual([given, asked], [[11, 12, 13], []]);
});

test('what is left out is asked for, and what comes meanwhile waits', async () => {
  const { feed, given, asked, until } = feedOf();
  take(feed, 11, 15);
  assert.deepEqual([given, feed.filling], [[11], true]);
  take(feed, 16, 18);
  await until(8);
  assert.deepEqual(given, [11, 12, 13, 14, 15, 16, 17, 18]);
  assert.deepEqual(asked, [12, 13, 14, 17]);
  assert.equal(feed.received, 18);
});

test('what was deleted is passed over, also where much of it was', async () => {
  const { feed, given, until } = feedOf(async (seq) => (seq % 50 ? null : messageOf(seq)));
  take(feed, 401);
  await until(9);
  assert.deepEqual(given, [50, 100, 150, 200, 250, 300, 350, 400, 401]);
});

test('what cannot be asked for now is asked for again', async () => {
  let fails = 2;
  const { feed, given, until } = feedOf(async (seq) => {
    if (fails-- > 0) throw new Error('away');
    return messageOf(seq);
  });
  take(feed, 12);
  await until(2);
  assert.deepEqual(given, [11, 12]);
});

test('a feed that is stopped gives nothing more', async () => {
  const gate = deferred();
  const { feed, given } = feedOf(async (seq) => {
    await gate.promise;
    return messageOf(seq);
  });
  take(feed, 13);
  feed.stop();
  gate.resolve();
  await new Promise(setImmediate);
  take(feed, 14);
  assert.deepEqual(given, []);
});
