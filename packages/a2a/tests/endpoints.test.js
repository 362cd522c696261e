// Where a client sends its messages, and in which version: as the card says, but only to the origin
// of the card.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, describe, test } from 'node:test';
import { createTaskClient } from '../src/index.js';
import { startSdkAgent } from './support/a2a-sdk.js';
import { serve } from './support/a2a.js';
import { startAgent, task } from './support/a2a-agent.js';
import { subscribeTo } from './support/clients.js';

const finished = [];
after(() => Promise.all(finished.map((close) => close())));

/** A server that keeps what it was asked. */
async function listening(answer, host = '127.0.0.1') {
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    asked.push({ method: request.method, path: request.url, headers: request.headers, body });
    answer(request, response);
  });
  server.listen(0, host);
  await once(server, 'listening');
  finished.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const { port } = server.address();
  return { asked, port, origin: `http://${host.includes(':') ? `[${host}]` : host}:${port}` };
}

/** What stands in a private network: it answers whatever it is asked. */
const victim = (host) =>
  listening((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } };
    response.end(
      JSON.stringify({ jsonrpc: '2.0', id: 1, result: { task, secret: 'of the place' } }),
    );
  }, host);

/** A stranger's card. */
const stranger = (card) =>
  listening((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ name: 'Stranger', capabilities: {}, ...card }));
  });

const at = (url, protocolVersion = '1.0', protocolBinding = 'JSONRPC') => ({
  url,
  protocolVersion,
  protocolBinding,
});

/** Cards that lead to a URL, in every form. */
const CARDS = {
  '1.0, JSON-RPC': (url) => ({ supportedInterfaces: [at(url)] }),
  '1.0, HTTP+JSON': (url) => ({ supportedInterfaces: [at(url, '1.0', 'HTTP+JSON')] }),
  '0.3 in a card of 1.0': (url) => ({ supportedInterfaces: [at(url, '0.3')] }),
  '0.3, its url': (url) => ({ url, protocolVersion: '0.3' }),
  '0.3, an additional interface': (url) => ({
    url: 'grpc://elsewhere.example',
    preferredTransport: 'GRPC',
    additionalInterfaces: [{ url, transport: 'JSONRPC' }],
  }),
};

describe('a card leads to its own origin only', () => {
  for (const [form, cardOf] of Object.entries(CARDS))
    test(`a card of ${form} that leads to another origin is not followed`, async () => {
      const place = await victim();
      const agent = await stranger(cardOf(`${place.origin}/latest/meta-data`));
      const client = createTaskClient(agent.origin, {
        headers: { authorization: 'Bearer secret' },
      });
      for (const act of [
        () => client.send('the user’s secret'),
        () => client.subscribe('the user’s secret').next(),
        () => client.get('t'),
        () => client.cancel('t'),
      ])
        await assert.rejects(act(), ({ code, message }) => {
          assert.equal(code, 'BLOCKED');
          assert.equal(
            message,
            `The card of ${agent.origin} leads to ${place.origin}, another origin: if you trust that, give endpoints: ["${place.origin}"] (docs/errors.md#blocked)`,
          );
          return true;
        });
      assert.deepEqual(place.asked, []);
      assert.deepEqual(
        agent.asked.map(({ method }) => method),
        ['GET'],
      );
    });

  for (const [what, urlOf] of Object.entries({
    'another name of the same machine': ({ port }) => `http://127.0.0.1:${port}/`,
    'its IPv6 address': ({ port }) => `http://[::1]:${port}/`,
    'an address mapped into IPv6': ({ port }) => `http://[::ffff:127.0.0.1]:${port}/`,
    'an address written as a number': ({ port }) => `http://2130706433:${port}/`,
    'no scheme': ({ port }) => `//127.0.0.1:${port}/`,
    backslashes: ({ port }) => `\\\\127.0.0.1:${port}/`,
    'a user who looks like the agent': ({ port }, agent) =>
      `http://${agent.replace('http://', '')}@127.0.0.1:${port}/`,
    'another scheme': (_place, agent) => agent.replace('http:', 'https:'),
    'a host that ends with a dot': (_place, agent) => agent.replace('localhost', 'localhost.'),
  }))
    test(`a card is not followed to ${what}`, async () => {
      const place = await victim();
      const held = await listening((_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const supportedInterfaces = [at(urlOf(place, named))];
        response.end(JSON.stringify({ capabilities: {}, supportedInterfaces }));
      });
      const named = held.origin.replace('127.0.0.1', 'localhost');
      await assert.rejects(createTaskClient(named).send('go'), { code: 'BLOCKED' });
      assert.deepEqual(place.asked, []);
      assert.deepEqual([...new Set(held.asked.map(({ method }) => method))], ['GET']);
    });

  for (const [what, urlOf] of Object.entries({
    'a blob of its own origin': (origin) => `blob:${origin}/1`,
    'a file': () => 'file:///etc/passwd',
    data: () => 'data:application/json,{}',
    'a password': (origin) => origin.replace('//', '//user:password@'),
    'no URL': () => 'http://[',
  }))
    test(`${what}: it is no address at all`, async () => {
      const card = { capabilities: {}, supportedInterfaces: [] };
      const agent = await listening((_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(card));
      });
      card.supportedInterfaces = [at(urlOf(agent.origin))];
      // Nor does the user's word make it one.
      for (const endpoints of [undefined, () => true])
        await assert.rejects(createTaskClient(agent.origin, { endpoints }).send('go'), {
          code: 'BLOCKED',
          message: `The card of ${agent.origin} leads to no address of http or https (docs/errors.md#blocked)`,
        });
      assert.deepEqual([...new Set(agent.asked.map(({ method }) => method))], ['GET']);
    });
});

test('neither a card nor an agent redirects a message elsewhere', async () => {
  const place = await victim();
  const redirecting = await listening((request, response) => {
    if (request.method === 'POST' || request.url === '/moved/.well-known/agent-card.json')
      return response.writeHead(307, { location: `${place.origin}/` }).end();
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ capabilities: {}, supportedInterfaces: [at('/')] }));
  });
  for (const url of [redirecting.origin, `${redirecting.origin}/moved/.well-known/agent-card.json`])
    await assert.rejects(createTaskClient(url).send('go'), { code: 'TRANSPORT_ERROR' });
  assert.deepEqual(place.asked, []);
});

describe('the user says where a card may lead', () => {
  const done = (ctx) => ctx.emitArtifact({ parts: [{ text: 'done' }] });
  const agents = async () => {
    const agent = await serve(done);
    finished.push(agent.close);
    const { origin } = new URL(agent.url);
    return { url: agent.url, origin };
  };

  test('with its origin, or with a function that is asked for each', async () => {
    const { url, origin } = await agents();
    const directory = await stranger({ supportedInterfaces: [at(url)] });
    const asked = [];
    for (const endpoints of [
      [origin],
      ['https://elsewhere.example', `${origin}/`],
      (to) => (asked.push(to.href), to.origin === origin),
    ]) {
      const client = createTaskClient(directory.origin, { endpoints });
      assert.equal((await client.send('go')).artifacts[0].parts[0].text, 'done');
    }
    assert.deepEqual(asked, [url]);
    for (const endpoints of [[], ['https://elsewhere.example'], () => 1, async () => true])
      await assert.rejects(createTaskClient(directory.origin, { endpoints }).send('go'), {
        code: 'BLOCKED',
      });
  });

  test('what it changes in the URL it was asked about changes nothing', async () => {
    const place = await victim();
    const { url, origin } = await agents();
    const directory = await stranger({ supportedInterfaces: [at(url)] });
    const endpoints = (to) => {
      const may = to.origin === origin;
      to.href = place.origin;
      return may;
    };
    const { status } = await createTaskClient(directory.origin, { endpoints }).send('go');
    assert.equal(status.state, 'completed');
    assert.deepEqual(place.asked, []);
  });

  test('of several interfaces the first that may be asked is taken', async () => {
    const place = await victim();
    const { url, origin } = await agents();
    const supportedInterfaces = [at(place.origin), at(`${place.origin}/x`, '0.3'), at(url)];
    const directory = await stranger({ supportedInterfaces });
    const client = createTaskClient(directory.origin, { endpoints: [origin] });
    assert.equal((await client.send('go')).status.state, 'completed');
    // One of its own origin needs no word of the user's.
    const own = await serve(
      done,
      {},
      { name: 'Own', supportedInterfaces: [at(place.origin), at()] },
    );
    finished.push(own.close);
    assert.equal((await createTaskClient(own.url).send('go')).status.state, 'completed');
    assert.deepEqual(place.asked, []);
  });

  test('or names the endpoint and its version: then there is no card', async () => {
    const { url } = await agents();
    const { status } = await createTaskClient(url, { version: '1.0' }).send('go');
    assert.equal(status.state, 'completed');
  });

  test('an agent on the official server, whose card is served elsewhere', async (t) => {
    const agent = await startSdkAgent({ steps: 1, step: 1 });
    t.after(() => agent.close());
    const card = await (
      await fetch(new URL('.well-known/agent-card.json', `${agent.url}/`))
    ).json();
    const directory = await stranger(card);
    await assert.rejects(createTaskClient(directory.origin).send('A'), { code: 'BLOCKED' });
    const endpoints = [new URL(agent.url).origin];
    const { status } = await createTaskClient(directory.origin, { endpoints }).send('A');
    assert.equal(status.state, 'completed');
  });

  test('endpoints without an origin throw where they are given', () => {
    for (const endpoints of [
      'https://agent.example',
      null,
      {},
      [5],
      ['*'],
      ['https://agent.example/a2a'],
      ['agent.example'],
      ['https://*.example'],
      ['null'],
      ['file:///'],
    ])
      assert.throws(() => createTaskClient('https://agent.example/', { endpoints }), {
        code: 'INVALID_PARAMS',
      });
  });
});

const CARD = { capabilities: { streaming: true } };

const interfaceOf = (url, protocolVersion) => ({
  url,
  protocolVersion,
  protocolBinding: 'JSONRPC',
});

for (const [what, path, card, method] of [
  [
    '1.0',
    '/.well-known/agent-card.json',
    (url) => ({ ...CARD, supportedInterfaces: [interfaceOf(url, '1.0')] }),
    'GetTask',
  ],
  [
    'the first version that is known',
    '/.well-known/agent-card.json',
    (url) => ({
      ...CARD,
      supportedInterfaces: [
        { url, protocolBinding: 'GRPC', protocolVersion: '1.0' },
        interfaceOf(url, '7.1'),
        interfaceOf(url, '0.3.0'),
        interfaceOf(url, '1.0'),
      ],
    }),
    'tasks/get',
  ],
  [
    '0.3',
    '/.well-known/agent-card.json',
    (url) => ({ ...CARD, url, protocolVersion: '0.3.0' }),
    'tasks/get',
  ],
  [
    '0.3 by another transport',
    '/.well-known/agent-card.json',
    (url) => ({
      ...CARD,
      url: 'http://127.0.0.1:1/',
      preferredTransport: 'GRPC',
      additionalInterfaces: [{ url, transport: 'JSONRPC' }],
    }),
    'tasks/get',
  ],
  [
    'the gem, whose URL is not to be trusted',
    '/agentCard',
    () => ({
      ...CARD,
      interfaces: [{ type: 'json-rpc', url: 'http://127.0.0.1', version: '1.0' }],
    }),
    'tasks/get',
  ],
]) {
  test(`the agent card decides the version that is spoken: ${what}`, async (t) => {
    const { agent, client } = await subscribeTo(t, { version: undefined });
    const got = client.get('t');
    for (const place of ['/.well-known/agent-card.json', '/agentCard']) {
      const asked = await agent.next(place);
      if (place === path) {
        asked.raw(200, 'application/json', JSON.stringify(card(agent.url)));
        break;
      }
      // Whatever an agent says that has no card there: nothing, or its home page.
      if (place === '/agentCard') asked.raw(404, 'text/plain', '');
      else asked.raw(200, 'text/html', '<p>hello</p>');
    }
    (await agent.next(method)).answer({ result: task('t', 'WORKING') });
    assert.equal((await got).status.state, 'working');
  });
}

test('an agent without a card: the error says what to do, and the next request fetches the card again', async (t) => {
  const { agent, client } = await subscribeTo(t, { version: undefined });
  for (let i = 0; i < 2; i++) {
    const got = client.get('t');
    for (const place of ['/.well-known/agent-card.json', '/agentCard'])
      (await agent.next(place)).raw(404, 'text/plain', '');
    await assert.rejects(got, { code: 'AGENT_CARD_NOT_FOUND', message: /version/ });
  }
});

test('headers are sent to the origin that they were given for, and to no other', async (t) => {
  const other = await startAgent();
  t.after(() => other.close());
  const { agent, client } = await subscribeTo(t, {
    version: undefined,
    headers: { authorization: 'secret' },
    endpoints: [new URL(other.url).origin],
  });
  const got = client.get('t');
  const asked = await agent.next('/.well-known/agent-card.json');
  assert.equal(asked.headers.authorization, 'secret');
  asked.raw(
    200,
    'application/json',
    JSON.stringify({ ...CARD, supportedInterfaces: [interfaceOf(other.url, '1.0')] }),
  );
  const elsewhere = await other.next('GetTask');
  assert.equal(elsewhere.headers.authorization, undefined);
  assert.equal(elsewhere.headers['a2a-version'], '1.0');
  elsewhere.answer({ result: task('t', 'WORKING') });
  await got;
});
