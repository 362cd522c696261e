// What recordings contain, and that they end. That they replay is shown in tests/differential and
// tests/core.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, expose } from 'abp-bridge';
import { createRecorder } from '../src/recorder.js';
import { readableCopy } from '../src/readable-copy.js';
import { recordSession } from '../../../tests/support/recorded.js';

const linesOf = ({ text }) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

test('a recording has each input with what it caused, and what happened in words', async () => {
  const lines = linesOf(await recordSession());
  const inputs = new Set(lines.map((line) => line.do));
  for (const name of [
    'create',
    'describe',
    'connect',
    'receive',
    'request',
    'call_received',
    'call_local',
    'cancel',
    'cancel_by_id',
    'finish',
    'value_received',
    'outcome_received',
    'finish_with_outcome',
    'progress_received',
    'free',
  ]) {
    assert.ok(inputs.has(name), name);
  }
  const finished = lines.findIndex((line) => line.do === 'finish');
  assert.equal(lines[finished + 1].then, 'result');
  assert.match(lines[0].config.seed, /^[0-9a-f]{32}$/);
  const outcomes = lines.map(({ note }) => note?.outcome).filter(Boolean);
  for (const outcome of ['completed', 'failed', 'cancelled', 'timed out']) {
    assert.ok(outcomes.includes(outcome), outcome);
  }
});

test('payloads are left out unless they are asked for', async () => {
  for (const upgrade of /** @type {const} */ (['frames', 'none'])) {
    const { text } = await recordSession({ upgrade });
    assert.ok(
      !text.includes('secret'),
      text.split('\n').find((line) => line.includes('secret')),
    );
    assert.ok(text.includes('capabilities/call') && text.includes('"name":"echo"'));
  }
  const whole = await recordSession({ recording: { payloads: true } });
  for (const secret of [
    'a secret"',
    'a secret step',
    'the secret result',
    'a secret failure',
    'a secret?',
  ]) {
    assert.ok(whole.text.includes(secret), secret);
  }
});

test('a recording ends where its limit is reached, and says so', async () => {
  const recorder = await recordSession({ recording: { maxLength: 10_000 } });
  const lines = linesOf(recorder);
  assert.deepEqual([recorder.truncated, lines.at(-1)], [true, { truncated: true }]);
  assert.ok(recorder.text.length < 20_000);
  assert.equal((await recordSession()).truncated, false);
});

test('each session of a client that connects again is recorded', async () => {
  const recorder = createRecorder();
  const open = () => {
    const { port1, port2 } = new MessageChannel();
    expose({ app: { id: 'a.b', name: 'A', version: '1' }, capabilities: {} }, { port: port1 });
    return port2;
  };
  const client = await connect(open, { agent: { name: 'a', version: '1' }, recorder });
  await client.reconnect();
  client.close();
  const made = linesOf(recorder).filter((line) => line.do === 'create');
  const freed = linesOf(recorder).filter((line) => line.do === 'free');
  assert.deepEqual(
    [made, freed].map((lines) => lines.map(({ e }) => e)),
    [
      [1, 2],
      [1, 2],
    ],
  );
  assert.notEqual(made[0].config.seed, made[1].config.seed);
});

test('a snapshot says what cannot be copied, and never throws', () => {
  const circle = { list: [1, undefined] };
  circle.self = circle;
  const hostile = {
    get boom() {
      throw new Error('no');
    },
  };
  let deep = {};
  for (let i = 0; i < 5000; i++) deep = { deep };
  assert.deepEqual(readableCopy(circle), { list: [1, undefined], self: '(circular)' });
  assert.deepEqual(
    readableCopy({ bytes: new Uint8Array(3), at: new ArrayBuffer(8), big: 10n, f() {}, n: NaN }),
    {
      bytes: '(Uint8Array, 3 bytes)',
      at: '(ArrayBuffer, 8 bytes)',
      big: '(bigint)',
      f: '(function)',
      n: 'NaN',
    },
  );
  assert.equal(readableCopy(hostile), '(cannot be read)');
  assert.ok(JSON.stringify(readableCopy(deep)).length < 1000);
  assert.ok(JSON.stringify(readableCopy(new Array(1e6).fill([1]))).length < 100_000);
  assert.match(readableCopy('x'.repeat(1e6)), /… \(1000000 characters\)$/);
});

test('a snapshot is bounded by what it visits, however often a part occurs in a small message', () => {
  const row = Array.from({ length: 1000 }, (_, i) => i);
  const text = 'x'.repeat(20_000);
  const name = { ['n'.repeat(1e6)]: 1 };
  for (const part of [row, text]) {
    const whole = JSON.stringify(readableCopy(new Array(5000).fill(part)));
    assert.ok(whole.length < 400_000, `${whole.length}`);
    assert.ok(whole.includes('(…)'));
  }
  assert.ok(JSON.stringify(readableCopy(name)).length < 21_000);
});
