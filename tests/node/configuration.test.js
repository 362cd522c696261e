// What expose and connect do not take: origins that are none, apps and agents that are not
// described.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { fromOrigins } from '../../parts/transports/index.js';

let channel;

beforeEach(() => (channel = new MessageChannel()));

afterEach(() => {
  channel.port1.close();
  channel.port2.close();
});

describe('configuration', () => {
  const app = { id: 'a', name: 'A', version: '1' };
  const bad = [
    '*',
    '',
    'null',
    'localhost.',
    'x@y',
    'https://a.example/path',
    'https://u@a.example',
    'https://a.example.',
    'file:///x',
    7,
    null,
    /a/,
  ];
  for (const origin of bad) {
    test(`${String(origin)} is no origin`, () => {
      assert.throws(() => expose({ app, capabilities: {} }, { origins: [origin] }), {
        name: 'AbpError',
        code: 'INVALID_PARAMS',
      });
    });
  }
  test('an origin is taken in every form that browsers read, and compared in theirs', () => {
    const forms = {
      'HTTPS://A.Example': 'https://a.example',
      'https://a.example/': 'https://a.example',
      'https://a.example:443': 'https://a.example',
      'http://a.example:8080/': 'http://a.example:8080',
      'https://bücher.example': 'https://xn--bcher-kva.example',
      'http://127.1': 'http://127.0.0.1',
    };
    for (const [given, compared] of Object.entries(forms)) {
      const allowed = fromOrigins([given]);
      const of = (origin) => allowed({ headers: { origin } });
      assert.deepEqual([of(compared), of(given)], [true, given === compared], given);
    }
  });

  test('an app in a page, without origins, exposes itself to nobody, and says so', () => {
    globalThis.window = globalThis;
    try {
      assert.throws(() => expose({ app, capabilities: {} }), /origins/);
    } finally {
      delete globalThis.window;
    }
  });
  test('what cannot be exposed or connected is named', async () => {
    assert.throws(
      () => expose({ app, capabilities: { x: {} } }, { port: channel.port1 }),
      /handler/,
    );
    assert.throws(() => expose({ app: {}, capabilities: {} }, { port: channel.port1 }), /app/);
  });
  test('an agent says who it is', async () => {
    await assert.rejects(connect(channel.port1, {}), /agent/);
    // null is what querySelector finds where there is no iframe yet.
    for (const target of [undefined, null, 'x', {}]) {
      await assert.rejects(connect(target, { agent: { name: 'a', version: '1' } }), {
        code: 'INVALID_PARAMS',
        message: /iframe, a port, a worker or a function/,
      });
    }
  });
});
