// Manifests: what discovery takes for one, and the one that an app gives.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { manifestOf } from '../../parts/discovery/discover.js';
import { expose } from '../../parts/main/index.js';
import {
  MiB,
  MANIFEST,
  web,
  useWeb,
  paths,
  sends,
  json,
  find,
  codeOf,
} from '../support/discovery.js';

useWeb();

describe('a manifest is data, and checked', () => {
  const given = (text) => find({ '/abp.json': json(text) });
  const withCapabilities = (capabilities) => JSON.stringify({ ...MANIFEST, capabilities });
  const names = (count) => Array.from({ length: count }, (_, i) => ({ name: `c.${i}` }));

  const invalid = {
    'no JSON': '{"abp":',
    'an empty text': '',
    'a script': `alert(1)`,
    null: 'null',
    'a list': '[]',
    'a text': '"0.1"',
    'no version': JSON.stringify({ ...MANIFEST, abp: undefined }),
    'a version that is a number': JSON.stringify({ ...MANIFEST, abp: 0.1 }),
    'a version in words': JSON.stringify({ ...MANIFEST, abp: 'latest' }),
    'no app': JSON.stringify({ ...MANIFEST, app: undefined }),
    'an app without an id': JSON.stringify({ ...MANIFEST, app: { name: 'A', version: '1' } }),
    'an app whose name is a list': JSON.stringify({
      ...MANIFEST,
      app: { id: 'a', name: ['A'], version: '1' },
    }),
    'an app that is inherited':
      '{"abp":"0.1","capabilities":[],"__proto__":{"app":{"id":"a","name":"A","version":"1"}}}',
    'an app whose fields are inherited':
      '{"abp":"0.1","capabilities":[],"app":{"__proto__":{"id":"a","name":"A","version":"1"}}}',
    'no capabilities': JSON.stringify({ ...MANIFEST, capabilities: undefined }),
    'capabilities that are an object': JSON.stringify({
      ...MANIFEST,
      capabilities: { length: 1, 0: { name: 'a' } },
    }),
    'a capability that is null': withCapabilities([null]),
    'a capability that is a name': withCapabilities(['export.pdf']),
    'a capability without a name': withCapabilities([{ description: 'a' }]),
    'names that are numbers': withCapabilities([{ name: 1 }]),
    'names that are lists': withCapabilities([{ name: ['toString'] }]),
    'names that are empty': withCapabilities([{ name: '' }]),
    '101 capabilities': withCapabilities(names(101)),
    '65 levels of lists': JSON.stringify({ ...MANIFEST, x: 0 }).replace(
      '"x":0',
      `"x":${'['.repeat(64)}${']'.repeat(64)}`,
    ),
    '100,000 levels of lists': `${'['.repeat(1e5)}${']'.repeat(1e5)}`,
    '100,000 levels of objects': `${'{"a":'.repeat(1e5)}1${'}'.repeat(1e5)}`,
  };
  for (const [what, text] of Object.entries(invalid)) {
    test(`${what} is no manifest`, async () => {
      assert.equal(await codeOf(given(text)), 'INVALID_MANIFEST');
      assert.deepEqual(paths(), ['/', '/abp.json']);
    });
  }

  test('100 capabilities and 64 levels are allowed', async () => {
    const text = withCapabilities(names(100)).replace(
      '"c.7"',
      `"c.7","x":${'['.repeat(61)}${']'.repeat(61)}`,
    );
    const found = await given(text);
    assert.equal(found.manifest.capabilities.length, 100);
  });

  test('__proto__ and constructor are names like others, and pollute nothing', async () => {
    const text = `{"abp":"0.1","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"app":{"id":"a","name":"A","version":"1","__proto__":{"polluted":1}},
      "capabilities":[{"name":"__proto__","__proto__":{"deprecated":true,"polluted":1}},{"name":"constructor"}]}`;
    const { manifest, warnings } = await given(text);
    assert.deepEqual(manifest, JSON.parse(text));
    assert.ok(Object.hasOwn(manifest, '__proto__'));
    assert.equal({}.polluted ?? manifest.polluted ?? manifest.capabilities[0].polluted, undefined);
    assert.deepEqual(warnings, []);
  });

  test('nothing that a page’s prototypes were polluted with counts', async (t) => {
    const inherited = { abp: '0.1', app: MANIFEST.app, capabilities: [], ...MANIFEST.app };
    const texts = ['{}', '{"abp":"0.1","app":{},"capabilities":[]}', withCapabilities([{}])];
    const { parse } = JSON;
    let polluted = 0;
    // From when the text is read until the turn ends: Node's own code would read them, too.
    t.mock.method(JSON, 'parse', (text) => {
      if (!texts.includes(text)) return parse(text);
      polluted++;
      for (const [key, value] of Object.entries(inherited))
        Object.defineProperty(Object.prototype, key, { value, configurable: true });
      queueMicrotask(() => {
        for (const key of Object.keys(inherited)) delete Object.prototype[key];
      });
      return parse(text);
    });
    for (const text of texts) assert.equal(await codeOf(given(text)), 'INVALID_MANIFEST');
    assert.equal(polluted, 3);
  });

  test('a manifest that is JSON, a script and a page at once runs nowhere', async () => {
    const name = '</script><script>globalThis.ran = 1</script>${globalThis.ran = 1}';
    const { manifest } = await given(
      withCapabilities([{ name, inputSchema: { $ref: `${web.origin}/schema.json` } }]),
    );
    assert.equal(manifest.capabilities[0].name, name);
    assert.equal(globalThis.ran, undefined);
    assert.deepEqual(paths(), ['/', '/abp.json']); // nothing that it names was fetched
  });

  test('a byte order mark and bytes that are no UTF-8 are read as fetch reads them', async () => {
    const app = { ...MANIFEST.app, name: 'X' };
    const text = JSON.stringify({ ...MANIFEST, app });
    const bytes = Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), Buffer.from(text)]);
    bytes[bytes.indexOf('X')] = 0xff;
    const { manifest } = await find({
      '/abp.json': sends({ 'content-type': 'application/json; charset=x' }, bytes),
    });
    assert.equal(manifest.app.name, '\ufffd');
  });
});

describe('the manifest of an app', () => {
  const app = {
    ...MANIFEST.app,
    description: 'Writes',
    homepage: 'https://writer.example',
    secret: 'no',
  };
  const capabilities = {
    plain: () => 1,
    full: {
      handler: () => 1,
      description: 'Does it',
      inputSchema: { type: 'object', properties: { ['__proto__']: { type: 'string' } } },
      outputSchema: {},
      experimental: true,
      deprecated: false,
      available: false,
      features: { a: true },
    },
    ['__proto__']: { handler: () => 1 },
  };
  const expected = {
    abp: '0.1',
    app: { ...MANIFEST.app, description: 'Writes', homepage: 'https://writer.example' },
    capabilities: [
      { name: 'plain' },
      {
        name: 'full',
        description: 'Does it',
        inputSchema: { type: 'object', properties: { ['__proto__']: { type: 'string' } } },
        outputSchema: {},
        experimental: true,
        deprecated: false,
      },
      { name: '__proto__' },
    ],
  };

  test('says what its definition says of it to everybody, and discover takes it', async () => {
    const manifest = manifestOf({ app, capabilities });
    assert.deepEqual(manifest, expected);
    const found = await find({ '/abp.json': JSON.stringify(manifest) });
    assert.deepEqual(found.manifest, expected);
  });

  test('is what an exposed app gives, as it stands', async () => {
    const { port1, port2 } = new MessageChannel();
    const exposed = expose({ app, capabilities }, { port: port1 });
    assert.deepEqual(await exposed.manifest(), expected);
    exposed.delete('full');
    exposed.set('more', { handler: () => 1, description: 'More' });
    assert.deepEqual((await exposed.manifest()).capabilities, [
      { name: 'plain' },
      { name: '__proto__' },
      { name: 'more', description: 'More' },
    ]);
    exposed.close();
    port2.close();
  });

  test('is refused where discover would refuse it', () => {
    const refused = {
      'app: { id, name, version }': { app: { id: 'a', name: 'A' }, capabilities: {} },
      '101 capabilities': {
        app,
        capabilities: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`c${i}`, () => 1])),
      },
      'capabilities[0]': { app, capabilities: { '': () => 1 } },
      '1 MiB': { app, capabilities: { a: { handler: () => 1, description: 'é'.repeat(MiB / 2) } } },
      levels: {
        app,
        capabilities: {
          a: {
            handler: () => 1,
            inputSchema: JSON.parse(`${'{"not":'.repeat(80)}{}${'}'.repeat(80)}`),
          },
        },
      },
    };
    for (const [words, definition] of Object.entries(refused)) {
      assert.throws(
        () => manifestOf(definition),
        (error) => error.code === 'INVALID_MANIFEST' && error.message.includes(words),
        words,
      );
    }
  });

  test('is refused where requirements are no list, as they are where the app is exposed', () => {
    const capabilities = { a: { handler: () => 1, requirements: 'a camera' } };
    const wrong = {
      code: 'INVALID_PARAMS',
      message: /^requirements of capability a must be a list/,
    };
    assert.throws(() => manifestOf({ app, capabilities }), wrong);
    assert.throws(() => expose({ app, capabilities }), wrong);
  });
});
