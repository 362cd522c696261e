/** Our peer and the ACP SDK, each as client and as agent, over the SDK's own streams. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestError, agent, client } from '@agentclientprotocol/sdk';
import { acpStream } from '../../src/adapters/acp.js';
import { createPeer, RpcError } from '../../src/index.js';
import { fired, gate, linkedTransports, outcome, recording, streamPair } from '../support/rpc.js';

const as = (params) => params;
const INITIALIZE = { protocolVersion: 1, clientCapabilities: {} };
const INITIALIZED = { protocolVersion: 1, agentCapabilities: {} };
const CANCEL = '$/cancel_request';

/** Our peer as the client of an SDK agent. */
async function withAgent(define) {
  const log = [];
  const [transport, stream] = streamPair();
  const app = agent().onRequest('initialize', () => INITIALIZED);
  const connection = define(app).connect(stream);
  const peer = createPeer(recording(transport, log, 'ours', 'theirs'), { dialect: 'acp' });
  await peer.request('initialize', INITIALIZE);
  log.length = 0;
  return { peer, log, connection };
}

/** Our peer as the agent of an SDK client. */
async function withClient(define, options) {
  const log = [];
  const [transport, stream] = streamPair();
  const peer = createPeer(recording(transport, log, 'ours', 'theirs'), {
    dialect: 'acp',
    ...options,
  });
  peer.handle('initialize', () => INITIALIZED);
  const connection = define(client()).connect(stream);
  const context = connection.agent;
  await context.request('initialize', INITIALIZE);
  log.length = 0;
  return { peer, log, connection, context };
}

const methods = (log) =>
  log.map(({ dir, msg }) => `${dir} ${msg.method ?? msg.error?.code ?? 'result'}`);

test('a request to their agent succeeds', async () => {
  const { peer } = await withAgent((app) => app.onRequest('ext/echo', as, ({ params }) => params));
  assert.deepEqual(await peer.request('ext/echo', { x: 1 }), { x: 1 });
  peer.close();
});

test('their agent obeys our cancel: the promise rejects with an AbortError caused by -32800', async () => {
  const started = gate();
  const { peer, log } = await withAgent((app) =>
    app.onRequest('ext/slow', as, async ({ signal }) => {
      started.open();
      throw await fired(signal);
    }),
  );
  const controller = new AbortController();
  const slow = outcome(peer.request('ext/slow', {}, { signal: controller.signal }));
  await started.opened;
  controller.abort('enough');
  const { err } = await slow;
  assert.deepEqual([err.name, err.message, err.cause.code], ['AbortError', 'enough', -32800]);
  assert.deepEqual(methods(log), ['ours ext/slow', `ours ${CANCEL}`, 'theirs -32800']);
  peer.close();
});

test('their agent ignores our cancel: its result resolves the promise', async () => {
  const started = gate();
  const { peer } = await withAgent((app) =>
    app.onRequest('ext/deaf', as, async ({ signal }) => {
      started.open();
      await fired(signal);
      return { done: true };
    }),
  );
  const controller = new AbortController();
  const deaf = peer.request('ext/deaf', {}, { signal: controller.signal });
  await started.opened;
  controller.abort();
  assert.deepEqual(await deaf, { done: true });
  peer.close();
});

test('their handler throws something else after our cancel: an AbortError caused by -32603', async () => {
  const started = gate();
  const { peer } = await withAgent((app) =>
    app.onRequest('ext/rude', as, async ({ signal }) => {
      started.open();
      await fired(signal);
      throw new Error('on fire');
    }),
  );
  const controller = new AbortController();
  const rude = outcome(peer.request('ext/rude', {}, { signal: controller.signal }));
  await started.opened;
  controller.abort('enough');
  const { err } = await rude;
  assert.deepEqual([err.name, err.cause.code], ['AbortError', -32603]);
  peer.close();
});

test('a signal that is aborted already sends nothing', async () => {
  const { peer, log } = await withAgent((app) =>
    app.onRequest('ext/echo', as, ({ params }) => params),
  );
  const { err } = await outcome(peer.request('ext/echo', {}, { signal: AbortSignal.abort() }));
  assert.equal(err.name, 'AbortError');
  assert.deepEqual(await peer.request('ext/echo', { x: 2 }), { x: 2 });
  assert.deepEqual(methods(log), ['ours ext/echo', 'theirs result']);
  peer.close();
});

test('an abort after completion sends nothing, and cancels of unknown requests are passed over', async () => {
  const { peer, log } = await withAgent((app) =>
    app.onRequest('ext/echo', as, ({ params }) => params),
  );
  const controller = new AbortController();
  await peer.request('ext/echo', {}, { signal: controller.signal });
  controller.abort();
  peer.notify(CANCEL, { requestId: 4711 });
  await peer.request('ext/echo', {});
  assert.equal(
    log.filter(({ msg }) => msg.method === CANCEL && msg.params.requestId !== 4711).length,
    0,
  );
  peer.close();
});

test('wait: false settles at once, and the late answer is counted and dropped', async () => {
  const started = gate();
  const unwound = gate();
  const { peer } = await withAgent((app) =>
    app
      .onRequest('ext/echo', as, ({ params }) => params)
      .onRequest('ext/slow', as, async ({ signal }) => {
        started.open();
        await fired(signal);
        await unwound.opened;
        return {};
      }),
  );
  const controller = new AbortController();
  const slow = outcome(peer.request('ext/slow', {}, { signal: controller.signal, wait: false }));
  await started.opened;
  controller.abort('enough');
  assert.equal((await slow).err.name, 'AbortError');
  unwound.open();
  while (!peer.counters.late) await peer.request('ext/echo', {});
  peer.close();
});

test('their agent cancels by itself: -32800 is an error like any other', async () => {
  const { peer } = await withAgent((app) =>
    app.onRequest('ext/limited', as, () => {
      throw RequestError.requestCancelled({ because: 'context limit' });
    }),
  );
  const { err } = await outcome(peer.request('ext/limited', {}));
  assert.deepEqual(
    [err.name, err.code, err.data],
    ['RpcError', -32800, { because: 'context limit' }],
  );
  peer.close();
});

test('their agent cancels what it asked of us: our handler is aborted and answers -32800', async () => {
  const { peer, log } = await withAgent((app) =>
    app.onRequest('session/prompt', as, async ({ signal, client: context }) => {
      await outcome(context.request('ext/ask', {}, { cancellationSignal: signal }));
      return { stopReason: 'cancelled' };
    }),
  );
  const asked = gate();
  peer.handle('ext/ask', async (_, { signal }) => {
    asked.open();
    throw await fired(signal);
  });
  const controller = new AbortController();
  const prompt = peer.request('session/prompt', { sessionId: 's' }, { signal: controller.signal });
  await asked.opened;
  controller.abort();
  assert.deepEqual(await prompt, { stopReason: 'cancelled' });
  assert.deepEqual(methods(log), [
    'ours session/prompt',
    'theirs ext/ask',
    'ours session/cancel',
    `ours ${CANCEL}`,
    `theirs ${CANCEL}`,
    'ours -32800',
    'theirs result',
  ]);
  peer.close();
});

test('their connection closes: our promises reject and our handlers are aborted', async () => {
  const asked = gate();
  const aborted = gate();
  const { peer, connection } = await withAgent((app) =>
    app.onRequest('ext/slow', as, async ({ client: context }) => {
      await outcome(context.request('ext/ask', {}));
    }),
  );
  peer.handle('ext/ask', async (_, { signal }) => {
    asked.open();
    aborted.open(await fired(signal));
  });
  const slow = outcome(peer.request('ext/slow', {}));
  await asked.opened;
  connection.close();
  // Its close cancels what it reads; what it writes goes on until the line is cut, as its own tests
  // do it.
  peer.close();
  assert.equal((await slow).err.message, 'Connection closed');
  assert.equal((await aborted.opened).name, 'AbortError');
});

test('our agent answers their client', async () => {
  const { context, peer } = await withClient(as);
  peer.handle('ext/echo', (params) => params);
  assert.deepEqual(await context.request('ext/echo', { x: 1 }), { x: 1 });
  const { err } = await outcome(context.request('ext/none', {}));
  assert.equal(err.code, -32601);
  peer.close();
});

test('our agent obeys their cancel, whatever its handler throws', async () => {
  for (const thrown of [(reason) => reason, () => new Error('anything')]) {
    const { context, peer } = await withClient(as);
    const started = gate();
    peer.handle('ext/slow', async (_, { signal }) => {
      started.open();
      throw thrown(await fired(signal));
    });
    const controller = new AbortController();
    const slow = outcome(
      context.request('ext/slow', {}, { cancellationSignal: controller.signal }),
    );
    await started.opened;
    controller.abort();
    const { err } = await slow;
    assert.deepEqual([err.code, err.message, err.data.requestId], [-32800, 'Request cancelled', 1]);
    peer.close();
  }
});

test('a value that our handler returns in spite of their cancel reaches them', async () => {
  const { context, peer } = await withClient(as);
  const started = gate();
  peer.handle('ext/slow', async (_, { signal }) => {
    started.open();
    await fired(signal);
    return { partial: [1, 2] };
  });
  const controller = new AbortController();
  const slow = context.request('ext/slow', {}, { cancellationSignal: controller.signal });
  await started.opened;
  controller.abort();
  assert.deepEqual(await slow, { partial: [1, 2] });
  peer.close();
});

test('their cancel finds a request that waits for its turn: the handler never runs', async () => {
  const { context, peer } = await withClient(as, { limits: { maxConcurrent: 1 } });
  const started = gate();
  const release = gate();
  let ran = false;
  peer.handle('ext/first', async () => {
    started.open();
    await release.opened;
    return {};
  });
  peer.handle('ext/second', () => {
    ran = true;
    return {};
  });
  const first = context.request('ext/first', {});
  await started.opened;
  const controller = new AbortController();
  const second = outcome(
    context.request('ext/second', {}, { cancellationSignal: controller.signal }),
  );
  controller.abort();
  assert.equal((await second).err.code, -32800);
  release.open();
  await first;
  assert.equal(ran, false);
  peer.close();
});

test('cancelling the prompt cancels what our agent asked their client, whose answer comes first', async () => {
  const asked = gate();
  const { context, peer, log } = await withClient((app) =>
    app.onRequest('session/request_permission', as, async ({ signal }) => {
      asked.open();
      throw await fired(signal);
    }),
  );
  // It does not wait for its question, nor forward its signal: that is ours to do.
  peer.handle('session/prompt', async (_, { signal, request }) => {
    const question = request('session/request_permission', {
      sessionId: 's',
      toolCall: { toolCallId: 't' },
      options: [],
    });
    question.catch(() => {});
    await fired(signal);
    return { stopReason: 'cancelled' };
  });
  const controller = new AbortController();
  const prompt = context.request(
    'session/prompt',
    { sessionId: 's', prompt: [] },
    { cancellationSignal: controller.signal },
  );
  await asked.opened;
  controller.abort();
  assert.deepEqual(await prompt, { stopReason: 'cancelled' });
  assert.deepEqual(methods(log), [
    'theirs session/prompt',
    'ours session/request_permission',
    `theirs ${CANCEL}`,
    `ours ${CANCEL}`,
    'theirs -32800',
    'ours result',
  ]);
  peer.close();
});

test('our agent cancels by itself: they hear -32800 unasked', async () => {
  const { context, peer } = await withClient(as);
  peer.handle('ext/limited', () => {
    throw new DOMException('out of context', 'AbortError');
  });
  const { err } = await outcome(context.request('ext/limited', {}));
  assert.deepEqual([err.code, err.message], [-32800, 'Request cancelled']);
  peer.close();
});

test('their client finds out about an unknown method as from its own agent', async () => {
  const { context, peer } = await withClient(as);
  const { err } = await outcome(context.request('ext/none', {}));
  assert.deepEqual(
    [err.message, err.data],
    ['"Method not found": ext/none', { method: 'ext/none' }],
  );
  peer.close();
});

test('closing our agent answers their requests and ends their connection', async () => {
  const { context, peer, connection } = await withClient(as);
  const started = gate();
  peer.handle('ext/slow', async (_, { signal }) => {
    started.open();
    await fired(signal);
  });
  const slow = outcome(context.request('ext/slow', {}));
  await started.opened;
  peer.close();
  assert.equal((await slow).err.code, -32800);
  await connection.closed;
});

test('both are asked with id 0 at once, and each answers its own', async () => {
  const { context, peer } = await withClient((app) =>
    app.onRequest('ext/who', as, () => ({ who: 'client' })),
  );
  peer.handle('ext/who', () => ({ who: 'agent' }));
  assert.deepEqual(
    await Promise.all([context.request('ext/who', {}), peer.request('ext/who', {})]),
    [{ who: 'agent' }, { who: 'client' }],
  );
  peer.close();
});

// --- Stop, as editors press it: `session/cancel` -------------------------------------------------

const STOPPED = { stopReason: 'cancelled' };
const OPTIONS = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }];
const GRANTED = { outcome: { outcome: 'selected', optionId: 'yes' } };

/** The agent of the first sample of docs/rpc.md: asks for permission, then works. */
function asInTheDocuments(peer, acts) {
  peer.handle('session/prompt', async (params, { signal, request }) => {
    const allowed = await request('session/request_permission', {
      sessionId: params.sessionId,
      toolCall: { toolCallId: 't' },
      options: OPTIONS,
    });
    if (allowed.outcome.outcome !== 'selected') throw new RpcError(-32602, 'Not allowed');
    acts.push('began');
    await fired(signal);
    acts.push('stopped');
    throw signal.reason;
  });
}

/** Their client over our adapter, and our agent. */
async function throughTheAdapter(define) {
  const [left, right] = linkedTransports();
  const peer = createPeer(right, { dialect: 'acp' });
  peer.handle('initialize', () => INITIALIZED);
  const connection = define(client()).connect(acpStream(left));
  await connection.agent.request('initialize', INITIALIZE);
  return { peer, context: connection.agent };
}

for (const [way, connected] of [
  ['over their stream', withClient],
  ['over our adapter', throughTheAdapter],
]) {
  test(`their editor stops our agent by session/cancel, ${way}`, async () => {
    const acts = [];
    const { context, peer } = await connected((app) =>
      app.onRequest('session/request_permission', as, () => GRANTED),
    );
    asInTheDocuments(peer, acts);
    const prompt = context.request('session/prompt', { sessionId: 's', prompt: [] });
    while (!acts.length) await new Promise((resolve) => setImmediate(resolve));
    await context.notify('session/cancel', { sessionId: 'another' });
    await context.notify('session/cancel', { sessionId: 's' });
    assert.deepEqual(await prompt, STOPPED);
    assert.deepEqual(acts, ['began', 'stopped']);
    peer.close();
  });

  test(`a permission that their editor grants after Stop is not acted on, ${way}`, async () => {
    const asked = gate();
    const user = gate();
    const acts = [];
    const { context, peer } = await connected((app) =>
      app.onRequest('session/request_permission', as, async () => {
        asked.open();
        await user.opened;
        return GRANTED;
      }),
    );
    asInTheDocuments(peer, acts);
    const prompt = context.request('session/prompt', { sessionId: 's', prompt: [] });
    await asked.opened;
    await context.notify('session/cancel', { sessionId: 's' });
    await new Promise((resolve) => setImmediate(resolve));
    user.open();
    assert.deepEqual(await prompt, STOPPED);
    assert.deepEqual(acts, []);
    peer.close();
  });
}

/** Our editor over its own transport, and their agent over our adapter. */
async function agentOverTheAdapter(define) {
  const [left, right] = linkedTransports();
  const app = agent().onRequest('initialize', () => INITIALIZED);
  define(app).connect(acpStream(right));
  const peer = createPeer(left, { dialect: 'acp' });
  await peer.request('initialize', INITIALIZE);
  return { peer };
}

for (const [way, connected] of [
  ['over their stream', withAgent],
  ['over our adapter', agentOverTheAdapter],
]) {
  test(`our editor stops their agent, which knows only session/cancel, ${way}`, async () => {
    const began = gate();
    const stopped = gate();
    const { peer } = await connected((app) =>
      app
        .onRequest('session/prompt', as, async () => {
          began.open();
          await stopped.opened;
          return STOPPED;
        })
        .onNotification('session/cancel', as, ({ params }) => stopped.open(params)),
    );
    const controller = new AbortController();
    const { signal } = controller;
    const prompt = peer.request('session/prompt', { sessionId: 's', prompt: [] }, { signal });
    await began.opened;
    controller.abort();
    assert.deepEqual(await prompt, STOPPED);
    assert.deepEqual(await stopped.opened, { sessionId: 's' });
    peer.close();
  });

  test(`our editor answers what their agent asks for permission when it stops it, ${way}`, async () => {
    const answered = [];
    const asked = gate();
    const { peer } = await connected((app) =>
      app
        .onRequest('session/prompt', as, async ({ client: context }) => {
          const question = { sessionId: 's', toolCall: { toolCallId: 't' }, options: OPTIONS };
          answered.push(await context.request('session/request_permission', question));
          return STOPPED;
        })
        .onNotification('session/cancel', as, () => {}),
    );
    peer.handle('session/request_permission', () => {
      asked.open();
      return new Promise(() => {}); // a dialog that nobody closes
    });
    const controller = new AbortController();
    const { signal } = controller;
    const prompt = peer.request('session/prompt', { sessionId: 's', prompt: [] }, { signal });
    await asked.opened;
    controller.abort();
    assert.deepEqual(await prompt, STOPPED);
    assert.deepEqual(answered, [{ outcome: { outcome: 'cancelled' } }]);
    peer.close();
  });
}
