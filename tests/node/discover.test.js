// Discovery against real HTTP servers, good ones and the hostile kinds. Each hostile test shows
// that the attack was really fired, by what its server saw, and what it got: a typed result, and a
// connection that was closed.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { Socket, createServer as createTcpServer, isIP } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync, brotliCompressSync, deflateSync } from 'node:zlib';
import { AbpError, discover, isPublic, manifestOf } from '../../parts/discovery/discover.js';
import { expose } from '../../parts/main/index.js';

const MiB = 1 << 20;
const LINK = '<link rel="abp-manifest" href="/abp.json">';
const MANIFEST = {
  abp: '0.1',
  app: { id: 'example.writer', name: 'Writer', version: '1.0' },
  capabilities: [
    { name: 'export.pdf', description: 'Makes a PDF', inputSchema: { type: 'object' } },
  ],
};
const LOCAL = { allowPrivate: true };

/** What the server answers, by path: a text, or a function of request and response. */
let routes = {};
let server, origin;
/**
 * What the server saw: a path, and a promise of the bytes that its connection took until it was
 * closed.
 */
let seen = [];
before(async () => {
  server = createServer((request, response) => {
    const { socket } = request;
    const closed = new Promise((resolve) =>
      socket.once('close', () => resolve(socket.bytesWritten)),
    );
    seen.push({ path: request.url, host: request.headers.host, closed });
    const route = routes[request.url];
    if (typeof route === 'function') return route(response, request);
    if (route === undefined) return response.writeHead(404).end('<head>');
    const type = request.url.endsWith('.json') ? 'application/json' : 'text/html';
    response.writeHead(200, { 'content-type': type }).end(route);
  });
  await new Promise((resolve) => server.listen(0, '0.0.0.0', resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});
afterEach(() => {
  routes = {};
  seen = [];
});

const paths = () => seen.map(({ path }) => path);
const sends = (headers, body) => (response) => response.writeHead(200, headers).end(body);
const html = (body) => sends({ 'content-type': 'text/html' }, body);
const json = (body) => sends({ 'content-type': 'application/json' }, body);
const redirect =
  (location, status = 302) =>
  (response) =>
    response.writeHead(status, { location }).end('the body of a redirect is not read');

/**
 * Sends a text over and over, as fast as it is taken, up to `most` bytes or until the connection is
 * closed.
 */
const endless =
  (headers, start, more, most = Infinity) =>
  (response) => {
    response.writeHead(200, headers).write(start);
    const chunk = Buffer.from(more.repeat(Math.ceil(65_536 / more.length)));
    let sent = 0;
    const go = () => {
      while (!response.destroyed && sent < most) {
        sent += chunk.length;
        if (!response.write(chunk)) return response.once('drain', go);
      }
      return response.end();
    };
    go();
  };

/** Discovers the page `/` with these routes. */
async function find(more, options) {
  routes = {
    '/': `<!doctype html><html><head>${LINK}</head>`,
    '/abp.json': JSON.stringify(MANIFEST),
    ...more,
  };
  return discover(`${origin}/`, { ...LOCAL, ...options });
}

/** The code of a discovery that found nothing, with a reason in words. */
async function codeOf(finding) {
  const { supported, code, reason, ...rest } = await finding;
  assert.equal(supported, false);
  assert.ok(reason.length > 10 && reason.length < 500, reason);
  assert.deepEqual(rest, {});
  return code;
}

describe('with sameOrigin nothing of another origin is asked', () => {
  /** Another origin, though the same server. */
  const elsewhere = (path) => `http://localhost:${server.address().port}${path}`;
  const attacks = {
    'by a link': () => ({ '/': `<link rel="abp-manifest" href="${elsewhere('/other.json')}">` }),
    'by a base': () => ({
      '/': `<base href="${elsewhere('/')}"><link rel="abp-manifest" href="other.json">`,
    }),
    'by a redirect of the page': () => ({ '/': redirect(elsewhere('/other')) }),
    'by a redirect of the manifest': () => ({ '/abp.json': redirect(elsewhere('/other.json')) }),
  };
  const others = { '/other': `<head>${LINK}</head>`, '/other.json': JSON.stringify(MANIFEST) };
  for (const [what, attack] of Object.entries(attacks)) {
    test(what, async () => {
      const more = { ...others, ...attack() };
      assert.equal(await codeOf(find(more, { sameOrigin: true })), 'BLOCKED');
      assert.ok(!paths().some((path) => path in others), String(paths()));
      assert.equal((await find(more)).supported, true, 'it would have been found');
    });
  }

  test('and its own manifest is found', async () => {
    assert.equal((await find({}, { sameOrigin: true })).supported, true);
    const moved = { '/abp.json': redirect('/moved.json'), '/moved.json': JSON.stringify(MANIFEST) };
    assert.equal((await find(moved, { sameOrigin: true })).supported, true);
  });
});

describe('a page that names its manifest', () => {
  test('is supported, with the manifest as it was written', async () => {
    assert.deepEqual(await find(), {
      supported: true,
      manifest: MANIFEST,
      manifestUrl: `${origin}/abp.json`,
      warnings: [],
    });
    assert.deepEqual(paths(), ['/', '/abp.json']);
  });

  const links = {
    'relative to the page': ['/a/page', '<link rel="abp-manifest" href="m.json">', '/a/m.json'],
    'relative to the base': [
      '/a/page',
      '<base href="/b/"><link rel="abp-manifest" href="m.json">',
      '/b/m.json',
    ],
    'relative to the page when the base is no address to read': [
      '/a/page',
      '<base href="data:,"><base href="/b/"><link rel="abp-manifest" href="m.json">',
      '/a/m.json',
    ],
    'relative to the page when the base is malformed': [
      '/a/page',
      '<base href="http://["><link rel="abp-manifest" href="m.json">',
      '/a/m.json',
    ],
    'the first of several': [
      '/',
      '<link rel="abp-manifest" href="1.json"><link rel="abp-manifest" href="2.json">',
      '/1.json',
    ],
    'with character references': [
      '/',
      '<link rel=abp-manifest href="m.json?a=1&amp;b=2">',
      '/m.json?a=1&b=2',
    ],
  };
  for (const [what, [page, head, expected]] of Object.entries(links)) {
    test(`by a link ${what}`, async () => {
      routes = { [page]: `<head>${head}</head>`, [expected]: json(JSON.stringify(MANIFEST)) };
      const { manifestUrl } = await discover(origin + page, LOCAL);
      assert.equal(manifestUrl, origin + expected);
    });
  }

  test('by a link to another server', async () => {
    const cdn = createServer((_, response) => json(JSON.stringify(MANIFEST))(response));
    await new Promise((resolve) => cdn.listen(0, '127.0.0.1', resolve));
    const manifestUrl = `http://127.0.0.1:${cdn.address().port}/m.json`;
    const found = await find({ '/': `<link rel="abp-manifest" href="${manifestUrl}">` });
    assert.equal(found.manifestUrl, manifestUrl);
    cdn.close();
  });

  test('relative to where five redirects of any kind lead', async () => {
    const found = await find({
      '/': redirect('/1', 301),
      '/1': redirect('2', 302),
      '/2': redirect('?x', 303),
      '/2?x': redirect('//' + origin.slice(7) + '/4', 307),
      '/4': redirect(`${origin}/deep/5`, 308),
      '/deep/5': '<head><link rel="abp-manifest" href="abp.json">',
      '/deep/abp.json': redirect('/abp.json'),
    });
    assert.equal(found.manifestUrl, `${origin}/deep/abp.json`);
    assert.equal(paths().length, 8);
  });

  test('is found although the head is slow and never ends', async () => {
    const found = await find({
      '/': async (response) => {
        response.writeHead(200, { 'content-type': 'text/html' });
        for (const c of `<head>${LINK}`) {
          response.write(c);
          await turn();
        }
      },
    });
    assert.ok(found.supported);
    await seen[0].closed;
  });

  test('is found in a page without a content type', async () => {
    assert.ok((await find({ '/': (response) => response.end(LINK) })).supported);
  });

  test('is found whatever a server compresses with, unasked', async () => {
    for (const [encoding, encode] of Object.entries({
      gzip: gzipSync,
      deflate: deflateSync,
      br: brotliCompressSync,
    })) {
      const headers = { 'content-encoding': encoding };
      const found = await find({
        '/': sends({ ...headers, 'content-type': 'text/html' }, encode(`<head>${LINK}</head>`)),
        '/abp.json': sends(
          { ...headers, 'content-type': 'application/json' },
          encode(JSON.stringify(MANIFEST)),
        ),
      });
      assert.deepEqual(found.manifest, MANIFEST);
    }
  });
});

/**
 * Where the manifest is that such a page links, as its server is asked for it; undefined if no link
 * counts.
 */
async function linkedIn(page) {
  const finding = await find({ '/': page });
  return finding.code === 'NO_MANIFEST' ? undefined : paths()[1];
}

describe('an address in a head', () => {
  const cases = {
    '&#127;': '\x7f',
    '&#128;': '€',
    '&#x80;': '€',
    '&#129;': '\x81',
    '&#x92;': '’',
    '&#159;': 'Ÿ',
    '&#x9f;': 'Ÿ',
    '&#160;': '\u00a0',
    '&#0;': '\ufffd',
    '&#x10ffff;': '\u{10ffff}',
    '&#x110000;': '\ufffd',
    '&#xd7ff;': '\ud7ff',
    '&#xd800;': '\ufffd',
    '&#xdfff;': '\ufffd',
    '&#xe000;': '\ue000',
    '&lowbar;&commat;&semi;&comma;&plus;&excl;&Tab;': '_@;,+!',
    '?b=1&amp;c=2&copy=3&ampd=4': '?b=1&c=2&copy=3&ampd=4',
  };
  for (const [reference, text] of Object.entries(cases)) {
    test(`${reference} is read as browsers read it`, async () => {
      const { pathname, search } = new URL(`/a${text}b`, origin);
      const page = `<link rel="abp-manifest" href="/a${reference}b">`;
      assert.equal(await linkedIn(page), pathname + search);
    });
  }
});

describe('a link counts', () => {
  const next = '<link rel="abp-manifest" href="n">';
  for (const name of ['title', 'style', 'noscript', 'noframes', 'script']) {
    test(`after <${name}>, but not within it`, async () => {
      assert.equal(await linkedIn(`<${name}>${LINK}</${name}>${next}`), '/n');
    });
  }
  test('after a template, but not within it, nor within two', async () => {
    const within = `<template>a<p>${LINK}</p><template>${LINK}</template>${LINK}</template>`;
    assert.equal(await linkedIn(within + next), '/n');
  });
  for (const name of ['svg', 'math', 'select', 'col', 'colgroup', 'plaintext', 'frameset']) {
    test(`after a template with </${name}>, but not after one with <${name}>, whose rules are others`, async () => {
      assert.equal(await linkedIn(`<template></${name}></template>${LINK}`), '/abp.json');
      assert.equal(await linkedIn(`<template><${name}></template>${LINK}`), undefined);
    });
  }
  for (const what of ['text', '<p>', '</head>', '</body>', '</html>', '</br>', '< ', '<iframe>']) {
    test(`not after ${what}`, async () => assert.equal(await linkedIn(what + LINK), undefined));
  }
  for (const what of [
    '\t\n\f\r ',
    '</p>',
    '</>',
    '<!-- > -->',
    '<?x>',
    '<meta>',
    '<base href=/x>',
  ]) {
    test(`after ${JSON.stringify(what)}`, async () =>
      assert.equal(await linkedIn(what + LINK), '/abp.json'));
  }
});

describe('versions and flags are warnings, since initialize decides', () => {
  const of = async (more) => {
    const found = await find({ '/abp.json': JSON.stringify({ ...MANIFEST, ...more }) });
    assert.ok(found.supported, found.reason);
    return found.warnings;
  };
  test('this version, by either of its names', async () => {
    assert.deepEqual(await of({ abp: '0.1' }), []);
    assert.deepEqual(await of({ abp: '1.0' }), []);
  });
  for (const abp of ['0.0', '0.2', '2.0', `1${'0'.repeat(500)}.0`]) {
    test(`version ${abp.slice(0, 9)}`, async () => {
      const [warning, ...rest] = await of({ abp });
      assert.match(warning, /^The manifest is for ABP \d+.*; this library speaks 0\.1$/);
      assert.ok(warning.length < 100);
      assert.deepEqual(rest, []);
    });
  }
  test('experimental, deprecated and repeated capabilities', async () => {
    const capabilities = [
      { name: 'a', experimental: true },
      { name: 'b', deprecated: true, experimental: false },
      { name: 'a' },
    ];
    assert.deepEqual(await of({ capabilities }), [
      '"a" is experimental',
      '"b" is deprecated',
      '"a" is listed more than once',
    ]);
  });
});

describe('what is not supported says why', () => {
  const cases = {
    'no page': [{ '/': undefined }, 'HTTP_STATUS'],
    'a page that is an error': [
      { '/': (r) => r.writeHead(500, { 'content-type': 'text/html' }).end(LINK) },
      'HTTP_STATUS',
    ],
    'a redirect to nowhere': [{ '/': (r) => r.writeHead(302).end(LINK) }, 'HTTP_STATUS'],
    'a page without a link': [{ '/': '<head><title>A</title></head>' }, 'NO_MANIFEST'],
    'an empty page': [{ '/': '' }, 'NO_MANIFEST'],
    'a link after a text': [{ '/': `<head>a ${LINK}</head>` }, 'NO_MANIFEST'],
    'a link after what begins the body': [
      { '/': `<head><div></div>${LINK}</head>` },
      'NO_MANIFEST',
    ],
    'a link in a comment': [{ '/': `<head><!-- --!x> ${LINK} --></head>` }, 'NO_MANIFEST'],
    'a link in a script': [
      { '/': `<head><script><!--<script></script>${LINK}--></script></head>` },
      'NO_MANIFEST',
    ],
    ...Object.fromEntries(
      ['style', 'title', 'noscript', 'template'].map((name) => [
        `a link in <${name}>`,
        [{ '/': `<head><${name}>${LINK}</${name}></head>` }, 'NO_MANIFEST'],
      ]),
    ),
    'a link in the body': [{ '/': `<head></head><body>${LINK}` }, 'NO_MANIFEST'],
    'a text that looks like a page': [
      { '/': sends({ 'content-type': 'text/plain' }, LINK) },
      'CONTENT_TYPE',
    ],
    'no manifest': [{ '/abp.json': undefined }, 'HTTP_STATUS'],
    'a manifest that is a page': [{ '/abp.json': html(JSON.stringify(MANIFEST)) }, 'CONTENT_TYPE'],
    'a manifest that is a script': [
      { '/abp.json': sends({ 'content-type': 'text/javascript' }, JSON.stringify(MANIFEST)) },
      'CONTENT_TYPE',
    ],
    'a manifest without a type': [
      { '/abp.json': (r) => r.end(JSON.stringify(MANIFEST)) },
      'CONTENT_TYPE',
    ],
    'a type that only contains JSON': [
      { '/abp.json': sends({ 'content-type': 'text/html; application/json' }, '{}') },
      'CONTENT_TYPE',
    ],
    'an encoding that nobody knows': [
      {
        '/abp.json': sends(
          { 'content-type': 'application/json', 'content-encoding': 'constructor' },
          '{}',
        ),
      },
      'CONTENT_TYPE',
    ],
    'an encoding that it is not in': [
      {
        '/abp.json': sends(
          { 'content-type': 'application/json', 'content-encoding': 'gzip' },
          '{}',
        ),
      },
      'TRANSPORT_ERROR',
    ],
    'a manifest cut off': [
      {
        '/abp.json': (r) => {
          r.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
          r.write('{', () => r.destroy());
        },
      },
      'TRANSPORT_ERROR',
    ],
    'a link that is no address': [{ '/': '<link rel="abp-manifest" href="http://[">' }, 'BLOCKED'],
  };
  for (const [what, [more, code]] of Object.entries(cases)) {
    test(what, async () => assert.equal(await codeOf(find(more)), code));
  }

  for (const type of [
    'application/json',
    'Application/JSON; charset=utf-8',
    'text/json',
    'application/manifest+json',
    'application/abp+json;q="a;b"',
  ]) {
    test(`but a manifest may be ${type}`, async () => {
      assert.ok(
        (await find({ '/abp.json': sends({ 'content-type': type }, JSON.stringify(MANIFEST)) }))
          .supported,
      );
    });
  }

  test('nobody listens, or nobody has that name', async () => {
    const gone = createTcpServer();
    await new Promise((resolve) => gone.listen(0, '127.0.0.1', resolve));
    const { port } = gone.address();
    await new Promise((resolve) => gone.close(resolve));
    assert.equal(await codeOf(discover(`http://127.0.0.1:${port}/`, LOCAL)), 'TRANSPORT_ERROR');
    for (const lookup of [
      async () => [],
      async () => Promise.reject(new Error('ENOTFOUND')),
      async () => undefined,
      async () => [{ address: 'not an address' }],
    ]) {
      const code = await codeOf(discover('http://no.example/', { ...LOCAL, lookup }));
      assert.equal(code, 'TRANSPORT_ERROR');
    }
  });

  test('a server that does not speak HTTP, or speaks it without end', async () => {
    const endings = {
      'SSH-2.0-OpenSSH\r\n': 'TRANSPORT_ERROR',
      [`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`]: 'TRANSPORT_ERROR',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n':
        'TRANSPORT_ERROR',
    };
    for (const [answer, code] of Object.entries(endings)) {
      const tcp = createTcpServer((socket) => socket.on('error', () => {}).write(answer));
      await new Promise((resolve) => tcp.listen(0, '127.0.0.1', resolve));
      assert.equal(await codeOf(discover(`http://127.0.0.1:${tcp.address().port}/`, LOCAL)), code);
      tcp.close();
    }
  });

  test('what is no address at all is the caller’s mistake', async () => {
    for (const url of ['', 'writer.example', '/page', undefined, null, 7, 'http://']) {
      await assert.rejects(
        discover(url),
        (error) => error instanceof AbpError && error.code === 'INVALID_PARAMS',
      );
    }
  });
});

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
      withCapabilities([{ name, inputSchema: { $ref: `${origin}/schema.json` } }]),
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

describe('charsets of pages', () => {
  const page = `<head><link rel="abp-manifest" href="/é.json"></head>`;
  const cases = {
    'UTF-8 without a word about it': ['text/html', Buffer.from(page)],
    'UTF-8 with a byte order mark': ['text/html', Buffer.from(`\ufeff${page}`)],
    'Latin-1': ['text/html; charset=ISO-8859-1', Buffer.from(page, 'latin1')],
    'UTF-16 with a byte order mark': [
      'text/html; Charset="utf-16le"',
      Buffer.from(`\ufeff${page}`, 'utf16le'),
    ],
    'a charset that nobody knows': ['text/html; charset=constructor', Buffer.from(page)],
    'a charset that is not read any more': ['text/html; charset=iso-2022-kr', Buffer.from(page)],
  };
  for (const [what, [type, bytes]] of Object.entries(cases)) {
    test(what, async () => {
      const found = await find({
        '/': sends({ 'content-type': type }, bytes),
        '/%C3%A9.json': json(JSON.stringify(MANIFEST)),
      });
      assert.equal(found.manifestUrl, `${origin}/%C3%A9.json`);
    });
  }
  test('UTF-7 hides no link', async () => {
    const text = `<head>${LINK.replace('<', '+ADw-').replace('>', '+AD4-')}</head>`;
    assert.equal(
      await codeOf(find({ '/': sends({ 'content-type': 'text/html; charset=utf-7' }, text) })),
      'NO_MANIFEST',
    );
  });
});

describe('servers that never end', () => {
  /** Memory that bodies could be kept in, at its highest while something goes on. */
  async function highest(act) {
    const used = () => process.memoryUsage.rss();
    const start = used();
    let most = start;
    const timer = setInterval(() => (most = Math.max(most, used())), 5);
    const result = await act();
    clearInterval(timer);
    return { result, growth: Math.max(most, used()) - start };
  }
  // What one connection may take before it is closed: our limit, and what sockets buffer on the
  // way.
  const BUFFERS = 32 * MiB;

  test('a head without end is read for 50,000 characters', async () => {
    const code = await codeOf(
      find({ '/': endless({ 'content-type': 'text/html' }, '<head>', '<meta name="a">\n') }),
    );
    assert.equal(code, 'NO_MANIFEST');
    const taken = await seen[0].closed;
    assert.ok(taken > 50_000 && taken < BUFFERS, `${taken} bytes`);
  });

  test('a link counts up to the last of 50,000 characters, and not after it', async () => {
    const before_ = (length) => `<!--${'x'.repeat(length - LINK.length - 7)}-->`;
    assert.ok((await find({ '/': before_(50_000) + LINK })).supported);
    assert.equal(await codeOf(find({ '/': `${before_(50_000)} ${LINK}` })), 'NO_MANIFEST');
  });

  test('a body without end is not read', async () => {
    const found = await find({
      '/': endless({ 'content-type': 'text/html' }, `<head>${LINK}</head>`, '<p>text</p>'),
    });
    assert.ok(found.supported);
    assert.ok((await seen[0].closed) < BUFFERS);
  });

  test('the body after a head without a link is not read', async () => {
    const code = await codeOf(
      find({ '/': endless({ 'content-type': 'text/html' }, '<head></head>', LINK) }),
    );
    assert.equal(code, 'NO_MANIFEST');
    assert.ok((await seen[0].closed) < BUFFERS);
  });

  test('of a manifest of 1 GB 1 MiB is read, and nothing more is kept', async () => {
    const { result, growth } = await highest(() =>
      codeOf(
        find({
          '/abp.json': endless({ 'content-type': 'application/json' }, '{"abp":"', 'x', 1e9),
        }),
      ),
    );
    assert.equal(result, 'TOO_LARGE');
    const taken = await seen[1].closed;
    assert.ok(taken > MiB && taken < BUFFERS, `${taken} bytes`);
    assert.ok(growth < 128 * MiB, `${growth} bytes`);
  });

  test('a manifest of 1 MiB is read; a byte more is too much', async () => {
    const text = JSON.stringify(MANIFEST).padEnd(MiB);
    assert.ok((await find({ '/abp.json': json(text) })).supported);
    assert.equal(await codeOf(find({ '/abp.json': json(`${text} `) })), 'TOO_LARGE');
  });

  // A gzip file may have several parts: a hundred of ten million spaces are 1 GB, and 1 MB to send.
  const bomb = (start) => {
    const parts = Array(100).fill(gzipSync(Buffer.alloc(1e7, ' ')));
    return Buffer.concat([gzipSync(start), ...parts]);
  };
  const compressed = (type) => ({ 'content-type': type, 'content-encoding': 'gzip' });
  test('of a manifest that would unpack to 1 GB 1 MiB is unpacked', async () => {
    const body = bomb('{');
    const { result, growth } = await highest(() =>
      codeOf(find({ '/abp.json': sends(compressed('application/json'), body) })),
    );
    assert.equal(result, 'TOO_LARGE');
    assert.ok(body.length < 1.1e6 && growth < 128 * MiB, `${body.length} became ${growth} bytes`);
    await seen[1].closed;
  });
  test('of a head that would unpack to 1 GB 50,000 characters are unpacked', async () => {
    const { result, growth } = await highest(() =>
      codeOf(find({ '/': sends(compressed('text/html'), bomb('<head>')) })),
    );
    assert.equal(result, 'NO_MANIFEST');
    assert.ok(growth < 128 * MiB, `${growth} bytes`);
    await seen[0].closed;
  });

  test('redirects without end are followed five times', async () => {
    let count = 0;
    routes = new Proxy({}, { get: () => redirect(`/${++count}`) });
    assert.equal(await codeOf(discover(`${origin}/`, LOCAL)), 'TOO_MANY_REDIRECTS');
    assert.deepEqual(paths(), ['/', '/1', '/2', '/3', '/4', '/5']);
    await Promise.all(seen.map(({ closed }) => closed));
  });

  test('redirects in a circle as well, also of a manifest', async () => {
    assert.equal(await codeOf(find({ '/': redirect('/') })), 'TOO_MANY_REDIRECTS');
    assert.equal(seen.length, 6);
    assert.equal(await codeOf(find({ '/abp.json': redirect('/abp.json') })), 'TOO_MANY_REDIRECTS');
    assert.equal(seen.length, 6 + 7);
  });

  test('the body of a redirect is not read, be it endless', async () => {
    const found = await find({
      '/': (response) => {
        response.setHeader('location', '/page');
        response.writeHead = (_status, headers) =>
          Object.getPrototypeOf(response).writeHead.call(response, 302, headers);
        endless({}, '', 'x')(response);
      },
      '/page': `<head>${LINK}</head>`,
    });
    assert.ok(found.supported);
    assert.ok((await seen[0].closed) < BUFFERS);
  });

  const slow = {
    'a page that never answers': { '/': () => {} },
    'a head that trickles': {
      '/': (response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).write('<head>');
        const timer = setInterval(() => response.write(' '), 5);
        response.on('close', () => clearInterval(timer));
      },
    },
    'a manifest that stops in the middle': {
      '/abp.json': (response) =>
        response.writeHead(200, { 'content-type': 'application/json' }).write('{"abp":'),
    },
    'headers that trickle': {
      '/': (_response, { socket }) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        const timer = setInterval(() => socket.write('x: y\r\n'), 5);
        socket.on('close', () => clearInterval(timer)).on('error', () => {});
      },
    },
    'early hints without end': {
      '/': (_response, { socket }) => {
        const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 5);
        socket.on('close', () => clearInterval(timer)).on('error', () => {});
      },
    },
  };
  for (const [what, more] of Object.entries(slow)) {
    test(`${what} is given up when the time is over, and closed`, async (t) => {
      t.mock.timers.enable({ apis: ['setTimeout'] });
      const finding = codeOf(find(more));
      const count = Object.hasOwn(more, '/') ? 1 : 2;
      while (seen.length < count) await turn();
      t.mock.timers.tick(10_000);
      assert.equal(await finding, 'TIMEOUT');
      await Promise.all(seen.map(({ closed }) => closed));
      assert.equal(seen.length, count);
    });
  }

  test('a name that is never resolved is given up too', async () => {
    const lookup = () => new Promise(() => {});
    assert.equal(
      await codeOf(discover('http://slow.example/', { lookup, timeout: 50 })),
      'TIMEOUT',
    );
  });

  test('the time is ten seconds for everything together', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    for (const timeout of [undefined, Infinity, 0, NaN]) {
      let isOver = false;
      let answered;
      const isAsked = new Promise((resolve) => (answered = resolve));
      const finding = codeOf(find({ '/abp.json': answered }, { timeout }));
      void finding.then(() => (isOver = true));
      await isAsked;
      t.mock.timers.tick(9999);
      await turn();
      assert.equal(isOver, false);
      t.mock.timers.tick(1);
      assert.equal(await finding, 'TIMEOUT');
    }
  });

  test('no timer is left behind', async () => {
    const timers = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const others = timers();
    assert.ok((await find()).supported);
    assert.equal(timers(), others);
  });

  test(
    'a signal gives a discovery up: it rejects with the signal’s reason, and the connection is closed',
    { timeout: 60_000 },
    async () => {
      const controller = new AbortController();
      const reason = new Error('the user went away');
      const { signal } = controller;
      const finding = find(
        { '/abp.json': () => controller.abort(reason) },
        { signal, timeout: 1e6 },
      );
      await assert.rejects(finding, (error) => error === reason);
      await Promise.all(seen.map(({ closed }) => closed));
      assert.equal(seen.length, 2);
      await assert.rejects(find({}, { signal: controller.signal }), (error) => error === reason);
      assert.equal(seen.length, 2); // aborted already: nothing was sent
    },
  );
});

describe('addresses that are not public', () => {
  /** Names of this test's own internet. What is public there leads to our server; see `dial`. */
  const NAMES = {
    'app.example': ['8.8.8.8'],
    'six.example': ['2606:4700::1'],
    localhost: ['127.0.0.1'],
    'inside.example': ['127.0.0.1'],
    'metadata.example': ['169.254.169.254'],
    'mapped.example': ['::ffff:127.0.0.1'],
    'zone.example': ['fe80::1%eth0'],
    'both.example': ['8.8.8.8', '10.0.0.1'],
  };
  let asked, dialled;
  const lookup = async (name) => {
    asked.push(name);
    return NAMES[name].map((address) => ({ address }));
  };
  const { connect } = Socket.prototype;
  before(() => {
    // Below the library and Node's http: what a socket is told to connect to is noted, and a public
    // address is exchanged for this machine, so that no test leaves it.
    Socket.prototype.connect = function (...args) {
      const [options] = Array.isArray(args[0]) ? args[0] : args;
      const resolve = options.lookup;
      if (isIP(options.host)) dialled.push(options.host);
      if (resolve) {
        options.lookup = (name, more, done) =>
          resolve(name, more, (error, found, family) => {
            if (error) return done(error);
            const addresses = more.all ? found : [{ address: found, family }];
            dialled.push(...addresses.map(({ address }) => address));
            const here = { address: '127.0.0.1', family: 4 };
            return more.all ? done(null, [here]) : done(null, here.address, 4);
          });
      }
      return connect.apply(this, args);
    };
  });
  after(() => (Socket.prototype.connect = connect));
  const reset = () => {
    asked = [];
    dialled = [];
  };
  const at = (name, path = '/') => `http://${name}:${server.address().port}${path}`;

  test('public ones are read, and only those', async () => {
    for (const [name, address] of [
      ['app.example', '8.8.8.8'],
      ['six.example', '2606:4700::1'],
    ]) {
      reset();
      routes = { '/': LINK, '/abp.json': JSON.stringify(MANIFEST) };
      const found = await discover(at(name), { lookup });
      assert.equal(found.manifestUrl, at(name, '/abp.json'));
      assert.deepEqual(dialled, [address, address]);
    }
  });

  // Each of them leads to the server of these tests when it is allowed: the attack is real.
  const spellings = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '017700000001',
    '0x7f.1',
    '127.0.0.1.',
    '127。0。0。1',
    '１２７.0.0.1',
    '127.0.0.1%2e'.replace('%2e', '%2E'),
    '0',
    '0.0.0.0',
    '127.255.255.254',
    'localhost',
    'LOCALHOST',
    'ⓛocalhost',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:127.0.0.1]',
  ];
  for (const host of spellings) {
    test(`http://${host}`, async () => {
      reset();
      routes = { '/': LINK, '/abp.json': JSON.stringify(MANIFEST) };
      const { code, reason } = await discover(at(host));
      assert.equal(code, 'BLOCKED');
      assert.match(reason, /allowPrivate: true/);
      assert.deepEqual([seen.length, dialled], [0, []]);
      const found = await discover(at(host), LOCAL);
      assert.ok(found.supported, found.reason);
      assert.equal(seen.length, 2);
    });
  }

  const others = [
    'http://[::1]/',
    'http://[::]/',
    'http://[fe80::1]/',
    'http://[fc00::1]/',
    'http://[fd12::1]/',
    'http://[::127.0.0.1]/',
    'http://[64:ff9b::a00:1]/',
    'http://[2002:7f00:1::]/',
    'http://[2001::1]/',
    'http://10.1.2.3/',
    'http://172.16.0.1/',
    'http://172.31.255.255/',
    'http://192.168.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://100.64.0.1/',
    'http://255.255.255.255/',
    'http://224.0.0.1/',
    'http://printer.local/',
    'http://a.localhost/',
    'http://router/',
    'http://localhost./',
    'http://db.internal/',
    'http://nas.home.arpa/',
    'http://PRINTER.LOCAL./',
    'https://127.0.0.1/',
    'http://user@8.8.8.8/',
    'http://:password@8.8.8.8/',
    'file:///etc/passwd',
    'data:text/html,<link>',
    'javascript:alert(1)',
    'ftp://8.8.8.8/',
    'blob:http://8.8.8.8/1',
    'chrome-extension://id/abp-app.html',
  ];
  test('and every other kind, before anything is resolved or dialled', async () => {
    for (const url of others) {
      reset();
      assert.equal(await codeOf(discover(url, { lookup })), 'BLOCKED', url);
      assert.deepEqual([asked, dialled], [[], []], url);
    }
  });

  test('blocks end where they end', () => {
    const pairs = {
      '9.255.255.255': '10.0.0.0',
      '11.0.0.0': '10.255.255.255',
      '100.63.255.255': '100.64.0.0',
      '100.128.0.0': '100.127.255.255',
      '126.255.255.255': '127.0.0.0',
      '128.0.0.0': '127.255.255.255',
      '169.253.255.255': '169.254.0.0',
      '172.15.255.255': '172.16.0.0',
      '172.32.0.0': '172.31.255.255',
      '192.167.255.255': '192.168.0.0',
      '192.169.0.0': '192.168.255.255',
      '198.17.255.255': '198.18.0.0',
      '198.20.0.0': '198.19.255.255',
      '223.255.255.255': '224.0.0.0',
      '1.0.0.0': '0.255.255.255',
      '2001:200::': '2001:1ff::',
      '2001:db7::': '2001:db8::',
      '2003::': '2002::',
      '2000::': '1fff::',
      '3ffe::': '4000::',
      '3fff:1000::': '3fff:fff::',
      '::ffff:8.8.8.8': '::ffff:10.0.0.1',
      '64:ff9b::8.8.8.8': '64:ff9b::10.0.0.1',
      'local.example': 'example.local',
    };
    for (const [open, closed] of Object.entries(pairs)) {
      assert.deepEqual([isPublic(open), isPublic(closed)], [true, false], `${open}, ${closed}`);
    }
    assert.equal(isPublic('not an address'), false);
  });

  for (const name of ['inside', 'metadata', 'mapped', 'zone', 'both']) {
    test(`a name that resolves to one: ${name}.example`, async () => {
      reset();
      assert.equal(await codeOf(discover(at(`${name}.example`), { lookup })), 'BLOCKED');
      assert.deepEqual([asked, dialled, seen], [[`${name}.example`], [], []]);
    });
  }

  test('over TLS the same holds: our server speaks none, but it is the checked address that is dialled', async () => {
    reset();
    const secure = (name) => at(name).replace('http:', 'https:');
    assert.equal(await codeOf(discover(secure('app.example'), { lookup })), 'TRANSPORT_ERROR');
    assert.equal(await codeOf(discover(secure('inside.example'), { lookup })), 'BLOCKED');
    assert.deepEqual([asked, dialled, seen], [['app.example', 'inside.example'], ['8.8.8.8'], []]);
  });

  test('a redirect to one, by its address or by a name', async () => {
    for (const host of ['127.0.0.1', 'localhost', 'inside.example', '[::ffff:7f00:1]']) {
      reset();
      seen = [];
      routes = { '/': redirect(at(host, '/secret')), '/secret': LINK };
      assert.equal(await codeOf(discover(at('app.example'), { lookup })), 'BLOCKED');
      assert.deepEqual([paths(), dialled], [['/'], ['8.8.8.8']]);
      await discover(at('app.example'), { lookup, ...LOCAL });
      assert.ok(paths().includes('/secret'), 'the redirect leads there when it is allowed');
    }
  });

  test('a redirect to what is not http', async () => {
    for (const location of [
      'file:///etc/passwd',
      'data:text/html,<link>',
      'javascript:1',
      'ftp://8.8.8.8/',
      'http://a:b@8.8.8.8/',
    ]) {
      reset();
      seen = [];
      routes = { '/': redirect(location) };
      assert.equal(await codeOf(discover(at('app.example'), { lookup })), 'BLOCKED');
      assert.deepEqual([paths(), dialled], [['/'], ['8.8.8.8']]);
    }
  });

  test('a link to one, or a base, or a redirect of the manifest', async () => {
    const attacks = {
      link: { '/': `<link rel="abp-manifest" href="${at('127.0.0.1', '/secret')}">` },
      base: { '/': `<base href="${at('inside.example')}"><link rel="abp-manifest" href="secret">` },
      redirect: { '/': LINK, '/abp.json': redirect(at('127.0.0.1', '/secret')) },
    };
    for (const [what, attack] of Object.entries(attacks)) {
      reset();
      seen = [];
      routes = { ...attack, '/secret': json(JSON.stringify(MANIFEST)) };
      assert.equal(await codeOf(discover(at('app.example'), { lookup })), 'BLOCKED', what);
      assert.ok(!paths().includes('/secret') && !dialled.includes('127.0.0.1'), what);
      await discover(at('app.example'), { lookup, ...LOCAL });
      assert.ok(paths().includes('/secret'), what);
    }
  });

  test('a name that is public when it is checked and private when it is used', async () => {
    reset();
    let answers = 0;
    const rebinding = async (name) => {
      asked.push(name);
      return [{ address: answers++ % 2 ? '127.0.0.1' : '8.8.8.8' }];
    };
    routes = { '/': '<head></head>' };
    // One connection: one answer, which is checked and dialled. The second answer is never asked
    // for.
    assert.equal(await codeOf(discover(at('app.example'), { lookup: rebinding })), 'NO_MANIFEST');
    assert.deepEqual([asked, dialled], [['app.example'], ['8.8.8.8']]);
    // The next connection gets the private answer, and is not made.
    assert.equal(await codeOf(discover(at('app.example'), { lookup: rebinding })), 'BLOCKED');
    assert.deepEqual([asked.length, dialled, paths()], [2, ['8.8.8.8'], ['/']]);
    // The same between the page and its manifest.
    reset();
    seen = [];
    routes = { '/': LINK, '/abp.json': JSON.stringify(MANIFEST) };
    assert.equal(await codeOf(discover(at('app.example'), { lookup: rebinding })), 'BLOCKED');
    assert.deepEqual([dialled, paths()], [['8.8.8.8'], ['/']]);
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
