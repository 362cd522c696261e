// Discovery against real HTTP servers: which link in a page counts, and what is not supported says
// why.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync, brotliCompressSync, deflateSync } from 'node:zlib';
import { AbpError, discover } from '../../parts/discovery/discover.js';
import {
  LINK,
  MANIFEST,
  LOCAL,
  web,
  useWeb,
  paths,
  sends,
  json,
  redirect,
  find,
  codeOf,
} from '../support/discovery.js';

useWeb();

const html = (body) => sends({ 'content-type': 'text/html' }, body);

describe('a page that names its manifest', () => {
  test('is supported, with the manifest as it was written', async () => {
    assert.deepEqual(await find(), {
      supported: true,
      manifest: MANIFEST,
      manifestUrl: `${web.origin}/abp.json`,
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
      web.routes = { [page]: `<head>${head}</head>`, [expected]: json(JSON.stringify(MANIFEST)) };
      const { manifestUrl } = await discover(web.origin + page, LOCAL);
      assert.equal(manifestUrl, web.origin + expected);
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
      '/2?x': redirect('//' + web.origin.slice(7) + '/4', 307),
      '/4': redirect(`${web.origin}/deep/5`, 308),
      '/deep/5': '<head><link rel="abp-manifest" href="abp.json">',
      '/deep/abp.json': redirect('/abp.json'),
    });
    assert.equal(found.manifestUrl, `${web.origin}/deep/abp.json`);
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
    await web.seen[0].closed;
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
      const { pathname, search } = new URL(`/a${text}b`, web.origin);
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
      assert.equal(found.manifestUrl, `${web.origin}/%C3%A9.json`);
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
