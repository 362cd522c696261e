// The agent card, given once in the form of 1.0 and read in every version: what it says of
// security, where it leads, and when it has changed.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTaskServer } from '../src/index.js';
import { CARD, servingUntilEnd, VERSIONS, ask } from './support/a2a.js';
import { once } from 'node:events';
import { connect as connect2, createServer as createServer2 } from 'node:http2';
import { connect } from 'node:net';

const serveUntilEnd = servingUntilEnd();
const served = (...args) => serveUntilEnd(() => {}, {}, ...args);
const PATH = '.well-known/agent-card.json';
const cardOf = async (url, version, path = PATH) =>
  (await fetch(url + path, { headers: version ? { 'a2a-version': version } : {} })).json();

const SECURE = {
  ...CARD,
  securitySchemes: {
    key: { apiKeySecurityScheme: { location: 'header', name: 'x-key', description: 'A key' } },
    bearer: { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } },
    login: {
      oauth2SecurityScheme: {
        flows: {
          clientCredentials: { tokenUrl: 'https://id.example/token', scopes: { read: 'R' } },
        },
      },
    },
    openid: { openIdConnectSecurityScheme: { openIdConnectUrl: 'https://id.example/' } },
    mutual: { mtlsSecurityScheme: {} },
  },
  securityRequirements: [
    { schemes: { login: { list: ['read'] } } },
    { schemes: { key: { list: [] }, mutual: {} } },
  ],
  skills: [{ ...CARD.skills[0], securityRequirements: [{ schemes: { bearer: { list: [] } } }] }],
};

describe('security', () => {
  const security = [{ login: ['read'] }, { key: [], mutual: [] }];

  test('1.0 has it as it was given', async () => {
    const { url } = await served(SECURE);
    const card = await cardOf(url, '1.0');
    assert.deepEqual(card.securitySchemes, SECURE.securitySchemes);
    assert.deepEqual(card.securityRequirements, SECURE.securityRequirements);
    assert.deepEqual(card.skills[0].securityRequirements, SECURE.skills[0].securityRequirements);
  });

  test('0.3 has it in the form of OpenAPI', async () => {
    const { url } = await served(SECURE);
    const card = await cardOf(url, '0.3');
    assert.deepEqual(card.securitySchemes, {
      key: { type: 'apiKey', name: 'x-key', description: 'A key', in: 'header' },
      bearer: { type: 'http', scheme: 'Bearer', bearerFormat: 'JWT' },
      login: { type: 'oauth2', ...SECURE.securitySchemes.login.oauth2SecurityScheme },
      openid: { type: 'openIdConnect', openIdConnectUrl: 'https://id.example/' },
      mutual: { type: 'mutualTLS' },
    });
    assert.deepEqual(card.security, security);
    assert.deepEqual(card.skills[0].security, [{ bearer: [] }]);
  });

  test('the gem has lists', async () => {
    const { url } = await served(SECURE);
    const card = await cardOf(url, undefined, 'agentCard');
    assert.deepEqual(card.security, security);
    assert.deepEqual(
      card.securitySchemes.map(({ type }) => type),
      ['apiKey', 'http', 'oauth2', 'openIdConnect', 'mutualTLS'],
    );
  });
});

test('a signed card is served as it was signed, and 0.3 names its signatures', async () => {
  const signed = {
    name: 'Signed',
    description: 'By its author',
    version: '2',
    supportedInterfaces: [
      { url: 'https://agent.example/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    ],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: CARD.skills,
    signatures: [{ protected: 'e30', signature: 'c2ln' }],
  };
  const { url } = await served(signed);
  assert.deepEqual(await cardOf(url, '1.0'), signed);
  assert.deepEqual(await cardOf(url), signed);
  assert.deepEqual((await cardOf(url, '0.3')).signatures, signed.signatures);
});

describe('interfaces', () => {
  const interfaceOf = (url, protocolVersion, protocolBinding = 'JSONRPC') => ({
    url,
    protocolVersion,
    protocolBinding,
  });
  const supportedInterfaces = [
    interfaceOf('https://a.example/grpc', '1.0', 'GRPC'),
    interfaceOf('https://a.example/new', '1.0'),
    interfaceOf('https://a.example/old', '0.3'),
    interfaceOf('https://a.example/old/rest', '0.3', 'HTTP+JSON'),
  ];

  test('each version is led to its own', async () => {
    const { url } = await served({ ...CARD, supportedInterfaces });
    const legacy = await cardOf(url, '0.3');
    assert.deepEqual(
      [legacy.url, legacy.preferredTransport, legacy.additionalInterfaces],
      [
        'https://a.example/old',
        'JSONRPC',
        [{ url: 'https://a.example/old/rest', transport: 'HTTP+JSON' }],
      ],
    );
    const gem = await cardOf(url, undefined, 'agentCard');
    assert.equal(gem.interfaces[0].url, 'https://a.example/new');
    const urls = (await cardOf(url, '1.0')).supportedInterfaces.map(({ url }) => url);
    assert.deepEqual(
      urls,
      supportedInterfaces.map(({ url }) => url),
    );
  });

  test('without a version the card is that of 1.0 and has nothing else in it', async () => {
    const { url } = await served(SECURE);
    const card = await cardOf(url);
    assert.deepEqual(card, await cardOf(url, '1.0'));
    // What a2a.proto has: strict readers of it take no other member.
    const known = [
      'name',
      'description',
      'supportedInterfaces',
      'provider',
      'version',
      'documentationUrl',
      'capabilities',
      'securitySchemes',
      'securityRequirements',
      'defaultInputModes',
      'defaultOutputModes',
      'skills',
      'signatures',
      'iconUrl',
    ];
    assert.deepEqual(
      Object.keys(card).filter((key) => !known.includes(key)),
      [],
    );
  });

  test('without a version it is that of 0.3 where the agent prefers that', async () => {
    const { url } = await served({
      ...CARD,
      supportedInterfaces: [{ protocolVersion: '0.3' }, { protocolVersion: '1.0' }],
    });
    const card = await cardOf(url);
    assert.deepEqual([card.url, card.protocolVersion], [url, '0.3']);
    const { supportedInterfaces: known } = await cardOf(url, '1.0');
    assert.deepEqual(
      known.map((one) => [one.url, one.protocolBinding]),
      [
        [url, 'JSONRPC'],
        [url, 'JSONRPC'],
      ],
    );
  });

  test('a query may say the version in place of a header', async () => {
    const { url } = await served(CARD);
    assert.equal((await cardOf(url, undefined, `${PATH}?A2A-Version=0.3`)).protocolVersion, '0.3');
  });
});

describe('caches', () => {
  const get = (url, headers) => fetch(url + PATH, { headers });

  test('a card has validators, and one that is known is not sent again', async () => {
    const { url } = await served(CARD);
    const first = await get(url, { 'a2a-version': '1.0' });
    await first.text();
    const etag = first.headers.get('etag');
    const date = first.headers.get('last-modified');
    assert.match(etag, /^"[\da-f]{16}"$/);
    assert.equal(new Date(date).toUTCString(), date);
    assert.equal(first.headers.get('vary'), 'A2A-Version');
    for (const headers of [
      { 'if-none-match': etag },
      { 'if-none-match': `"x", W/${etag}` },
      { 'if-none-match': '*' },
      { 'if-modified-since': date },
    ]) {
      const again = await get(url, { 'a2a-version': '1.0', ...headers });
      assert.deepEqual([again.status, await again.text()], [304, ''], JSON.stringify(headers));
      assert.equal(again.headers.get('etag'), etag);
    }
    for (const headers of [
      { 'if-none-match': '"x"' },
      { 'if-none-match': '"x"', 'if-modified-since': date },
      { 'if-modified-since': new Date(0).toUTCString() },
      { 'if-modified-since': 'yesterday' },
      { 'a2a-version': '0.3', 'if-none-match': etag },
    ]) {
      const other = await get(url, { 'a2a-version': '1.0', ...headers });
      assert.equal(other.status, 200, JSON.stringify(headers));
      await other.text();
    }
  });

  test('a card that changes has another tag', async () => {
    const card = { ...CARD };
    const { url } = await served(card);
    const tagOf = async () => (await get(url)).headers.get('etag');
    const before = await tagOf();
    card.description = 'Another';
    assert.notEqual(await tagOf(), before);
  });
});

test('whoever changes the card that an agent gave changes that one, and no other', () => {
  const agent = () => createTaskServer({ card: { name: 'Agent' }, execute() {} });
  const card = agent().card('1.0', 'http://agent.example/');
  card.signatures.push({ protected: 'p', signature: 's' });
  card.securitySchemes.key = { apiKeySecurityScheme: { location: 'header', name: 'x-key' } };
  const { signatures, securitySchemes } = agent().card('1.0', 'http://agent.example/');
  assert.deepEqual([signatures, securitySchemes], [[], {}]);
});

describe('an agent is refused where it is made:', () => {
  const agent = (more, options) =>
    createTaskServer({ card: { name: 'Agent', ...more }, execute() {} }, options);
  const uri = 'urn:x';
  for (const [card, at, why] of [
    [{ skills: 'a' }, 'card.skills', 'must be a list of objects'],
    [{ skills: ['a'] }, 'card.skills', 'must be a list of objects'],
    [{ skills: [{ name: 'a', tags: 'b' }] }, 'card.skills[0].tags', 'must be a list of strings'],
    [{ skills: [{ name: 'a' }, { tags: [] }] }, 'card.skills[1].name', 'is required: a string'],
    [{ skills: [{ name: 'a', example: [] }] }, 'card.skills[0].example', 'is not known'],
    [{ security: [] }, 'card.security', 'is not known; there are: name, description'],
    [{ description: 5 }, 'card.description', 'must be a string'],
    [{ provider: 'me' }, 'card.provider', 'must be an object'],
    [{ provider: { url: 1 } }, 'card.provider.url', 'must be a string'],
    [{ capabilities: [] }, 'card.capabilities', 'must be an object'],
    [{ capabilities: { streaming: 'no' } }, 'card.capabilities.streaming', 'must be true or false'],
    [{ capabilities: { stream: true } }, 'card.capabilities.stream', 'is not known'],
    [
      { capabilities: { pushNotifications: true } },
      'card.capabilities.pushNotifications',
      'needs the option push',
    ],
    [
      { capabilities: { extendedAgentCard: true } },
      'card.capabilities.extendedAgentCard',
      'is not supported',
    ],
    [
      { capabilities: { extensions: [{ uri }, { required: true }] } },
      'card.capabilities.extensions[1].uri',
      'is required',
    ],
    [{ supportedInterfaces: [{ url: 5 }] }, 'card.supportedInterfaces[0].url', 'must be a string'],
    [{ securitySchemes: { key: 'x' } }, 'card.securitySchemes.key', 'must be an object'],
    [{ defaultInputModes: 'text/plain' }, 'card.defaultInputModes', 'must be a list of strings'],
  ])
    test(`${at} ${why}`, () => {
      assert.throws(
        () => agent(card),
        (error) => {
          assert.equal(error.code, 'INVALID_PARAMS');
          assert.equal(error.details.field, at);
          assert.ok(error.message.startsWith(`${at} ${why}`), error.message);
          return true;
        },
      );
    });

  test('what is misspelt beside the card', () => {
    const card = { name: 'Agent' };
    const wrong = { code: 'INVALID_PARAMS', message: /no option replies; it has: card, execute/ };
    assert.throws(() => createTaskServer({ card, execute() {}, replies() {} }), wrong);
  });

  test('and what is absent, null or false is not', () => {
    const capabilities = { pushNotifications: false, extendedAgentCard: false };
    agent({ capabilities, skills: null, provider: undefined }).close();
  });
});

describe('an address', () => {
  test('each version has its own card, at its own path', async () => {
    const { url } = await serveUntilEnd(() => {});
    const get = async (path, headers) => {
      const response = await fetch(url + path, { headers });
      assert.match(response.headers.get('content-type'), /^application\/json/);
      return response.json();
    };
    const latest = await get('.well-known/agent-card.json', { 'a2a-version': '1.0' });
    assert.deepEqual(
      latest.supportedInterfaces.map((i) => [i.url, i.protocolBinding, i.protocolVersion]),
      [
        [url, 'JSONRPC', '1.0'],
        [url, 'HTTP+JSON', '1.0'],
        [url, 'JSONRPC', '0.3'],
      ],
    );
    assert.deepEqual(latest.capabilities, {
      streaming: true,
      pushNotifications: false,
      extensions: [
        {
          uri: 'urn:abp-bridge:a2a:repeats',
          description: 'A message that comes again from its sender is taken once',
          required: false,
        },
      ],
      extendedAgentCard: false,
    });
    assert.deepEqual(await get('.well-known/agent-card.json'), latest);
    const legacy = await get('.well-known/agent-card.json', { 'a2a-version': '0.3' });
    assert.deepEqual(
      [legacy.url, legacy.preferredTransport, legacy.protocolVersion],
      [url, 'JSONRPC', '0.3'],
    );
    // Of 0.2, which is not spoken.
    assert.equal((await fetch(`${url}.well-known/agent.json`)).status, 404);
    const gem = await get('agentCard');
    assert.deepEqual(gem.interfaces, [{ type: 'json-rpc', url, version: '1.0' }]);
    assert.equal((await get('under/it/agentCard')).interfaces[0].url, `${url}under/it`);
    assert.equal((await fetch(`${url}elsewhere`)).status, 404);
    assert.equal((await fetch(url, { method: 'PUT' })).status, 405);
  });

  test('a malformed Host is not repeated in the card', async () => {
    const { http } = await serveUntilEnd(() => {}, { hosts: '*' });
    const socket = connect(http.address().port, '127.0.0.1');
    socket.write('GET /agentCard HTTP/1.1\r\nHost: evil"><script>\r\nConnection: close\r\n\r\n');
    let text = '';
    for await (const chunk of socket) text += chunk;
    assert.match(text, /"url":"\/"/);
    assert.doesNotMatch(text, /<script/);
  });

  test('over HTTP/2 the card has the address that was asked', async () => {
    const agent = createTaskServer({ card: CARD, execute() {} });
    const http = createServer2(agent.handle).listen(0, '127.0.0.1');
    await once(http, 'listening');
    const origin = `http://127.0.0.1:${http.address().port}`;
    const client = connect2(origin);
    const request = client.request({ ':path': '/.well-known/agent-card.json' });
    let text = '';
    for await (const chunk of request) text += chunk;
    assert.equal(JSON.parse(text).supportedInterfaces[0].url, `${origin}/`);
    client.close();
    http.close();
    agent.close();
  });

  test('the card of an agent without streams has streaming: false, and streams are refused', async () => {
    const { url } = await serveUntilEnd(
      () => {},
      {},
      { ...CARD, capabilities: { streaming: false } },
    );
    const { capabilities } = await (await fetch(`${url}agentCard`)).json();
    assert.equal(capabilities.streaming, false);
    for (const { stream, resubscribe, message, headers } of Object.values(VERSIONS)) {
      const sent = await ask(url, stream, { message: message('go') }, headers);
      const again = await ask(url, resubscribe, { id: 'x' }, headers);
      assert.deepEqual([sent.error.code, again.error.code], [-32004, -32004]);
    }
  });
});
