// What an agent keeps is bounded in number, length and time: tasks, what waits to be read, and
// answers.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTaskServer } from '../src/index.js';
import {
  CARD,
  VERSIONS,
  ask,
  deferred,
  exchange,
  updateOf,
  open,
  servingUntilEnd,
  stateOf,
} from './support/a2a.js';
import { Tasks, ready } from '../src/tasks.js';
import { useClock } from '../../../tests/support/clock.js';
import { stepwise, beginTask, askAbout } from './support/stepwise.js';

const served = servingUntilEnd();
const names = VERSIONS['1.0'];
const send = async (url, text, more) => {
  const message = { ...names.message(text), ...more };
  return ask(url, names.send, { message }, names.headers);
};
const get = (url, id) => ask(url, names.get, { id }, names.headers);
/** Answers with as many characters as it is asked for. */
const execute = ({ message, emitArtifact }) =>
  emitArtifact({ artifactId: 'a', parts: [{ text: 'x'.repeat(Number(message.parts[0].text)) }] });

describe('tasks', () => {
  test('that have ended are forgotten, the earliest first, when all are too long', async () => {
    const { url, agent } = await served(execute, { limits: { maxStored: 10_000 } });
    const ids = [];
    for (let i = 0; i < 5; i++) ids.push((await send(url, '4000')).result.task.id);
    const found = await Promise.all(ids.map(async (id) => Boolean((await get(url, id)).result)));
    assert.deepEqual(found, [false, false, false, true, true]);
    assert.equal(agent.counters.finished, 2);
    // Those that are short are remembered as before.
    for (let i = 0; i < 10; i++) await send(url, '1');
    assert.ok((await get(url, ids[4])).result);
    assert.equal(agent.counters.finished, 12);
  });

  test('that live are not forgotten: what makes them too long is refused, and a new one, too', async () => {
    const gates = [];
    const heard = [];
    const { url, agent } = await served(
      async ({ emitArtifact, message, task }) => {
        const parts = [{ text: 'x'.repeat(4000) }];
        try {
          for (let i = 0; i < 3; i++)
            heard.push(emitArtifact({ artifactId: 'a', parts }, { append: true }));
        } catch (error) {
          heard.push(error.constructor.name, task.artifacts[0]?.parts.length ?? 0);
        }
        if (message.parts[0].text === 'stay') {
          const gate = deferred();
          gates.push(gate);
          await gate.promise;
        }
      },
      { limits: { maxStored: 10_000 } },
    );
    const stream = await open(url, names.stream, { message: names.message('stay') }, names.headers);
    for (let i = 0; i < 4; i++) await stream.next();
    assert.deepEqual(heard.splice(0), [true, true, 'RangeError', 2]);
    // Its messages have room yet, but no artifact has.
    const sent = await send(url, 'go');
    assert.equal(stateOf(sent), 'completed');
    assert.deepEqual(heard, ['RangeError', 0]);
    const long = await send(url, 'x'.repeat(3000));
    assert.equal(stateOf(long), 'completed');
    gates[0].resolve();
    assert.deepEqual((await stream.rest()).map(updateOf), ['completed']);
    assert.equal(agent.counters.live, 0);
  });

  test('are as long as the limits with what an executor says of its state, too', async () => {
    const heard = [];
    const { url } = await served(
      ({ emitStatus, emitArtifact, message }) => {
        const emit = (act) => {
          try {
            heard.push(act());
          } catch (error) {
            heard.push(error.constructor.name);
          }
        };
        const [length, times] = message.parts[0].text.split(' ').map(Number);
        emit(() => emitArtifact({ parts: [{ text: 'x'.repeat(1000) }] }));
        for (let i = 0; i < times; i++) emit(() => emitStatus('working', 'x'.repeat(length)));
        return emit(() => emitStatus('completed'));
      },
      { limits: { maxTask: 8000, maxStored: 15_000 } },
    );
    // The earlier messages of a task make room for later ones.
    assert.equal(stateOf(await send(url, '2500 5')), 'completed');
    assert.deepEqual(heard.splice(0), Array(7).fill(true));
    assert.equal(stateOf(await send(url, '7000 1')), 'completed');
    assert.deepEqual(heard.splice(0), [true, 'RangeError', true]);
  });

  test('that live take no more status messages than there is room for', async () => {
    const heard = [];
    const gate = deferred();
    const { url } = await served(
      async ({ emitStatus }) => {
        try {
          for (let i = 0; i < 4; i++) heard.push(emitStatus('working', 'x'.repeat(4000)));
        } catch (error) {
          heard.push(error.constructor.name);
        }
        await gate.promise;
      },
      { limits: { maxStored: 10_000 } },
    );
    const params = { message: names.message('go') };
    const stream = await open(url, names.stream, params, names.headers);
    for (let i = 0; i < 3; i++) await stream.next();
    assert.deepEqual(heard, [true, true, 'RangeError']);
    gate.resolve();
    await stream.rest();
  });

  test('that are full of live ones take no other, and say that it is not for ever', async () => {
    const gate = deferred();
    const { url } = await served(
      async (ctx) => {
        if (ctx.message.parts[0].text.length > 10) await gate.promise;
      },
      { limits: { maxStored: 1000 } },
    );
    const params = { message: names.message('x'.repeat(2000)) };
    const stream = await open(url, names.stream, params, names.headers);
    await stream.next();
    const refused = await send(url, 'go');
    assert.deepEqual([refused.error.code, refused.error.data[0].reason], [-32603, 'RATE_LIMITED']);
    const rest = await fetch(`${url}message:send`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...names.headers },
      body: JSON.stringify({ message: names.message('go') }),
    });
    assert.deepEqual([rest.status, (await rest.json()).error.status], [429, 'RESOURCE_EXHAUSTED']);
    assert.deepEqual(
      [refused.error.data[1].retryDelay, rest.headers.get('retry-after')],
      ['1s', '1'],
    );
    gate.resolve();
    await stream.rest();
    assert.equal(stateOf(await send(url, 'go')), 'completed');
  });

  test('that wait for an answer take none that is too much for all, until there is room', async () => {
    const { url } = await served(
      (ctx) => ctx.message.parts[0].text !== 'end' && ctx.emitStatus('input-required'),
      { limits: { maxStored: 5000 } },
    );
    const [one, other] = [(await send(url, 'a')).result.task, (await send(url, 'b')).result.task];
    const long = { taskId: one.id };
    assert.equal(stateOf(await send(url, 'x'.repeat(4800), long)), 'input-required');
    const refused = await send(url, 'x'.repeat(4800), { taskId: other.id });
    assert.equal(refused.error.data[0].reason, 'RATE_LIMITED');
    await ask(url, names.cancel, { id: one.id }, names.headers);
    assert.equal(stateOf(await send(url, 'end', { taskId: other.id })), 'completed');
  });

  test('each are as long as the limit and no longer; replacing an artifact frees what it took', async () => {
    const heard = [];
    const { url } = await served(
      ({ emitArtifact }) => {
        const emit = (id, length, options) => {
          try {
            return emitArtifact({ artifactId: id, parts: [{ text: 'x'.repeat(length) }] }, options);
          } catch (error) {
            return error.constructor.name;
          }
        };
        heard.push(
          emit('a', 900),
          emit('a', 900),
          emit('b', 900),
          emit('a', 100, { append: true }),
        );
        heard.push(emit('a', 1), emit('b', 900));
      },
      { limits: { maxTask: 1300 } },
    );
    const { task } = (await send(url, 'go')).result;
    assert.deepEqual(heard, [true, true, 'RangeError', true, true, true]);
    assert.deepEqual(
      task.artifacts.map(({ parts }) => parts[0].text.length),
      [1, 900],
    );
  });

  test('let go of their earliest messages first', async () => {
    const { url } = await served((ctx) => ctx.emitStatus('input-required', 'More?'), {
      limits: { maxTask: 3000 },
    });
    const { task } = (await send(url, 'first')).result;
    for (let i = 0; i < 5; i++) await send(url, 'x'.repeat(1000), { taskId: task.id });
    const { history } = (await get(url, task.id)).result;
    assert.ok(JSON.stringify(history).length < 3300);
    assert.equal(history.at(-1).parts[0].text, 'More?');
    assert.equal(history.at(-2).parts[0].text.length, 1000);
  });
});

describe('answers', () => {
  test('a page of a list ends before it is too long, and the next one goes on', async () => {
    const { url } = await served(execute, { limits: { maxAnswer: 10_000 } });
    const ids = [];
    for (let i = 0; i < 5; i++) ids.push((await send(url, '4000')).result.task.id);
    const seen = [];
    for (let pageToken; pageToken !== '';) {
      const params = { includeArtifacts: true, ...(pageToken && { pageToken }) };
      const { result } = await ask(url, names.list, params, names.headers);
      assert.ok(result.tasks.length > 0 && JSON.stringify(result).length < 12_000);
      seen.push(...result.tasks.map(({ id }) => id));
      ({ nextPageToken: pageToken } = result);
    }
    assert.deepEqual(seen.sort(), ids.sort());
    const withoutArtifacts = await ask(url, names.list, {}, names.headers);
    assert.equal(withoutArtifacts.result.tasks.length, 5);
    // The gem has no pages.
    const gem = await ask(url, VERSIONS.gem.list, {});
    assert.match(gem.error.message, /too long/);
  });

  test('a task that is too long for one is refused by name, and its stream goes on', async () => {
    const gate = deferred();
    const { url } = await served(
      async (ctx) => {
        execute(ctx);
        await gate.promise;
      },
      { limits: { maxAnswer: 5000 } },
    );
    const stream = await open(url, names.stream, { message: names.message('9000') }, names.headers);
    const { id } = (await stream.next()).result.task;
    for (const method of [names.get, names.resubscribe]) {
      const { error } = await ask(url, method, { id }, names.headers);
      assert.deepEqual([error.code, error.data[0].reason], [-32603, 'TOO_LARGE']);
    }
    gate.resolve();
    assert.deepEqual((await stream.rest()).map(updateOf), ['working', 'artifact a', 'completed']);
  });

  test('what cannot be made text is refused before anything is sent', async () => {
    const { url } = await served(execute);
    const { stringify } = JSON;
    // A string of more than 2^29 characters, which no engine makes, would take too long to ask for.
    JSON.stringify = (value, ...rest) => {
      if (value?.result?.id === 'x' || value?.result?.task?.artifacts)
        throw new RangeError('Invalid string length');
      return stringify(value, ...rest);
    };
    try {
      const { error } = await send(url, '10');
      assert.deepEqual([error.code, error.data[0].reason], [-32603, 'TOO_LARGE']);
      assert.match(error.message, /Invalid string length/);
    } finally {
      JSON.stringify = stringify;
    }
    assert.equal(stateOf(await send(url, '10')), 'completed');
  });
});

describe('what waits to be read', () => {
  test('is bounded for all: who has waited longest is cut off, who reads is not', async () => {
    const running = deferred();
    const run = (ctx) => new Promise(() => running.resolve(ctx));
    const agent = createTaskServer({ card: CARD, execute: run }, { maxBacklog: 100 });
    const responses = [];
    const subscribe = async (method, params) => {
      const { request, response } = exchange(method, params);
      void agent.handle(request, response);
      while (!response.written.length) await new Promise(setImmediate);
      responses.push(response);
    };
    void subscribe(names.stream, { message: names.message('go') });
    const { id } = (await running.promise).task;
    while (responses.length < 4) await subscribe(names.resubscribe, { id });
    const [dead, slow, quick, rest] = responses;
    const cut = () => responses.map((response) => response.cut);
    /** So much waits for it now, which is looked at as something of it is on its way. */
    const waits = (response, size) => {
      response.writableLength = size;
      response.emit('drain');
    };
    for (const [response, size] of [
      [dead, 40],
      [slow, 40],
      [quick, 20],
    ])
      waits(response, size);
    assert.deepEqual(cut(), [false, false, false, false]);
    waits(quick, 25);
    assert.deepEqual(cut(), [true, false, false, false]);
    // One that has read a part in the meantime is passed over.
    slow.writableLength = 39;
    waits(quick, 70);
    assert.deepEqual(cut(), [true, false, true, false]);
    slow.emit('close');
    waits(rest, 100);
    assert.deepEqual(cut(), [true, false, true, false]);
    agent.close();
  });

  test('by many who read nothing of one task is bounded, and those who read go on', async () => {
    const gate = deferred();
    // More than a kernel takes for a socket.
    const length = 16 << 20;
    const { url, http, agent } = await served(
      async (ctx) => {
        execute(ctx);
        await gate.promise;
      },
      { maxBacklog: 2 * length },
    );
    const params = { message: names.message(String(length)) };
    const stream = await open(url, names.stream, params, names.headers);
    const { id } = (await stream.next()).result.task;
    while (updateOf(await stream.next()) !== 'artifact a');
    let cut = 0;
    const sockets = [];
    const responses = [];
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: names.get, params: { id } });
    const head = `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    http.on('request', (_, response) => {
      response.on('close', () => cut++);
      responses.push(response);
    });
    const readers = 8;
    for (let i = 0; i < readers; i++) {
      const socket = connect(http.address().port, '127.0.0.1');
      socket.on('error', () => {});
      socket.pause();
      sockets.push(socket);
      await once(socket, 'connect');
      socket.write(`${head}\r\n\r\n${body}`);
    }
    // Who is answered while others still get theirs may be slow in comparison.
    const answered = () => responses.filter(({ writableEnded }) => writableEnded).length;
    // Kernels and sockets are at work here: looking at once, over and over, would take their time.
    while (answered() < readers || cut === 0) await sleep(10);
    assert.ok((await get(url, id)).result);
    gate.resolve();
    assert.deepEqual((await stream.rest()).map(updateOf), ['completed']);
    for (const socket of sockets) socket.destroy();
    assert.equal(agent.counters.finished, 1);
  });
});

test('a server that is closed while its memory is full ends all the same', async () => {
  const agent = createTaskServer({ card: CARD, execute }, { limits: { maxStored: 1 } });
  const request = new Request('http://x/', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...names.headers },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: names.send,
      params: { message: names.message('5') },
    }),
  });
  const answer = await (await agent.fetch(request)).json();
  assert.match(JSON.stringify(answer), /FAILED/);
  agent.close();
  assert.deepEqual(agent.counters.live, 0);
});

test('maxTasks limits the tasks that live, remembered those that have ended', async () => {
  const script = stepwise();
  const { url, agent } = await served(script.execute, { limits: { maxTasks: 2, remembered: 1 } });
  const one = await beginTask(url, script, '1.0');
  const two = await beginTask(url, script, '1.0');
  const refused = await ask(url, names.send, { message: names.message('three') }, names.headers);
  assert.equal(refused.error.code, -32603);
  one.run.gate.resolve();
  await one.stream.rest();
  two.run.gate.resolve();
  await two.stream.rest();
  assert.equal(agent.counters.finished, 1);
  assert.equal((await askAbout(url, names, 'get', one.id)).error.code, -32001);
  const { totalSize } = (await ask(url, names.list, {}, names.headers)).result;
  assert.equal(totalSize, 1);
  assert.equal((await ask(url, 'tasks/list', {})).result.length, 1);
});

test('a finished task is forgotten when it is old enough', async (t) => {
  const clock = useClock(t);
  const script = stepwise();
  const { url } = await served(script.execute, { limits: { rememberFor: 300 } });
  const { run, stream, id } = await beginTask(url, script, '1.0');
  run.gate.resolve();
  await stream.rest();
  clock.advance(299);
  assert.equal(stateOf(await get(url, id)), 'completed');
  clock.advance(1);
  assert.equal((await get(url, id)).error.code, -32001);
});

test('a task whose question is not answered in time is canceled', async (t) => {
  const clock = useClock(t);
  const { url } = await served((ctx) => ctx.emitStatus('input-required', 'Anybody?'), {
    limits: { rememberFor: 500 },
  });
  const asks = await send(url, 'go');
  clock.advance(499);
  assert.equal(stateOf(await get(url, asks.result.task.id)), 'input-required');
  clock.advance(1);
  assert.equal(stateOf(await get(url, asks.result.task.id)), 'canceled');
});

test('a task is remembered from its end, however long it has run', async (t) => {
  await ready();
  const tasks = new Tasks({ rememberFor: 60_000 });
  const work = { onAbort: assert.fail, onState() {} };
  const task = tasks.begin('1', work);
  const now = performance.now.bind(performance);
  t.mock.method(performance, 'now', () => now() + 120_000);
  task.returns();
  assert.equal(task.state, 'completed');
  // What is due by now comes first.
  tasks.begin('2', work).lease(60_000);
  assert.equal(tasks.find('1'), work);
  tasks.forget('2'); // its lease would end in the midst of another test
});

test('a long event is in memory once, for all of its readers', async () => {
  const gate = deferred();
  const text = 'x'.repeat(10_000);
  const { agent } = await served(async (ctx) => {
    await gate.promise;
    ctx.emitArtifact({ artifactId: 'a', parts: [{ text }] });
  });
  const streamOf = async (id, method, params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const headers = { 'content-type': 'application/json', ...names.headers };
    const asked = new Request('http://agent.example/', { method: 'POST', headers, body });
    return (await agent.fetch(asked)).body.getReader();
  };
  const first = await streamOf(1, names.stream, { message: names.message('go') });
  const { value } = await first.read();
  const { id } = JSON.parse(new TextDecoder().decode(value).slice('data: '.length)).result.task;
  const second = await streamOf('two', names.resubscribe, { id });
  gate.resolve();
  const read = async (reader) => {
    let all = '';
    let long;
    for (let next; !(next = await reader.read()).done;) {
      all += new TextDecoder().decode(next.value);
      if (next.value.length > text.length) long = next.value;
    }
    const frames = all.trim().split('\n\n');
    return [long, frames.map((frame) => JSON.parse(frame.slice('data: '.length)))];
  };
  const [[a, [, ofFirst]], [b, ofSecond]] = await Promise.all([read(first), read(second)]);
  assert.equal(a, b);
  assert.equal(ofFirst.result.artifactUpdate.artifact.parts[0].text, text);
  assert.deepEqual([ofFirst.id, ofSecond[0].id], [1, 'two']);
});
