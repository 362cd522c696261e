// Mistakes in a handler, and names that are no text: each gets its error, and everything else goes
// on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';

async function pair(capabilities) {
  const { port1, port2 } = new MessageChannel();
  const app = expose(
    { app: { id: 'test.app', name: 'Test', version: '1.0' }, capabilities },
    { port: port1 },
  );
  const client = await connect(port2, { agent: { name: 'test', version: '1.0' } });
  const close = () => {
    app.close();
    port2.close();
  };
  return { client, port: port2, close };
}

test('context.call refuses what is no signal and no name, and the app goes on', async () => {
  let call;
  const { client, close } = await pair({
    outer: (_params, context) => call(context),
    inner: () => 'called',
  });
  for (const mistake of [
    (context) => context.call('inner', {}, { signal: new AbortController() }),
    (context) => context.call('inner', {}, { signal: 'stop' }),
    (context) => context.call({ name: 'inner' }),
    (context) => context.call(undefined),
    (context) => context.call(Symbol('inner')),
  ]) {
    call = mistake;
    const { error } = await client.call('outer');
    assert.equal(error.code, 'INVALID_PARAMS');
  }
  call = (context) => context.call('inner', {}, { signal: new AbortController().signal });
  assert.equal((await client.call('outer')).data, 'called');
  close();
});

test('a call of a capability that is named by an object is answered', async () => {
  const { port1, port2 } = new MessageChannel();
  const app = expose(
    { app: { id: 'test.app', name: 'Test', version: '1.0' }, capabilities: { x: () => 1 } },
    { port: port1 },
  );
  const answers = [];
  let answered;
  port2.onmessage = ({ data }) => {
    answers.push(data);
    answered?.();
  };
  const until = async (type) => {
    while (!answers.some((each) => each.type === type)) {
      await new Promise((resolve) => (answered = resolve));
    }
    return answers.splice(0).find((each) => each.type === type);
  };
  port2.postMessage({
    type: 'initialize',
    id: '1',
    payload: {
      protocolVersion: '0.1',
      agent: { name: 'test', version: '1' },
      capabilities: {},
    },
  });
  await until('initialize-result');
  for (const capability of [{}, { toString: 1 }, null, 5, ['x']]) {
    port2.postMessage({ type: 'capabilities/call', id: '2', payload: { capability, params: {} } });
    const { payload } = await until('capabilities/call-result');
    assert.equal(payload.success, false);
  }
  app.close();
  port2.close();
});

test('a promise of a handler’s whose `then` calls back twice settles its call once', async () => {
  const odd = (settle) =>
    Object.defineProperty(Promise.resolve('given'), 'then', {
      value: (done, failed) => settle(done, failed),
    });
  const { client, close } = await pair({
    both: () => odd((done, failed) => (failed(new Error('no')), done('other'))),
    never: () => odd(() => {}),
    fine: () => 'fine',
  });
  for (const name of ['both', 'never']) assert.equal((await client.call(name)).data, 'given');
  assert.equal((await client.call('fine')).data, 'fine');
  close();
});
