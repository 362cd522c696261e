// Discovery in a page, and its reading of heads compared with the browser's own. Only Chromium is
// asked.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { launch, serve } from '../support/browser.js';

const MANIFEST = { abp: '0.1', app: { id: 'a.b', name: 'A', version: '1' }, capabilities: [] };
let files, other, browser, page, elsewhere;
before(async () => {
  [files, browser] = await Promise.all([serve(), launch()]);
  other = createServer(({ url }, response) => {
    if (url.startsWith('/open')) response.setHeader('access-control-allow-origin', '*');
    const [, , what] = url.split('/');
    if (what === 'away') return response.writeHead(302, { location: '/open/page' }).end();
    response.setHeader('content-type', what === 'abp.json' ? 'application/json' : 'text/html');
    response.end(
      what === 'abp.json'
        ? JSON.stringify(MANIFEST)
        : '<head><link rel="abp-manifest" href="abp.json"></head>',
    );
  });
  await new Promise((resolve) => other.listen(0, resolve));
  elsewhere = `http://localhost:${other.address().port}`;
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${files.port}/tests/browser/pages/blank.html`);
  await page.evaluate(async () => {
    const [{ discover }, { readHead }, { heads }] = await Promise.all(
      [
        '/parts/discovery/discover.js',
        '/parts/discovery/head-reader.js',
        '/tests/support/heads.js',
      ].map((path) => import(path)),
    );
    const frame = document.body.appendChild(document.createElement('iframe'));
    const WANTED = 'link[rel~="abp-manifest" i][href]:not([href=""])';
    Object.assign(window, {
      discover,
      heads,
      /** What the browser finds, in a document with scripts: where `<noscript>` is text. */
      byBrowser(html) {
        const document = frame.contentDocument;
        document.open();
        document.write(html);
        document.close();
        const { head } = document;
        return {
          href: head.querySelector(WANTED)?.getAttribute('href'),
          base: head.querySelector('base[href]')?.getAttribute('href'),
        };
      },
      byUs(html) {
        const reading = readHead();
        reading.next();
        let read = '';
        for (const c of html) {
          read += c;
          const { done, value } = reading.next(c);
          if (done) return { href: value.href?.replace(/\r\n?/g, '\n'), base: value.base, read };
        }
        return { read };
      },
    });
  });
});
after(async () => {
  await browser?.close();
  files?.close();
  other?.close();
  other?.closeAllConnections();
});

test('four thousand heads, many of them hostile, are read as the browser reads them', async () => {
  const { differences, found } = await page.evaluate(() => {
    const differences = [];
    const found = {};
    for (const html of window.heads(4000, 20261121)) {
      const ours = window.byUs(html);
      // The protocol ends at `</head>`, where a browser still puts a `<link>` into the head.
      const isCut = /<\/head[^>]*>$/i.test(ours.read);
      const { href } = window.byBrowser(isCut ? ours.read : html);
      const { base } = window.byBrowser(ours.read);
      const isSame = ours.href === href && (href === undefined || ours.base === base);
      if (!isSame) differences.push({ html, ours, href, base });
      found[href] = (found[href] ?? 0) + 1;
    }
    return { differences, found };
  });
  assert.deepEqual(differences.slice(0, 5), [], `${differences.length} differences`);
  // All kinds of links were found, and a good part of the heads had none.
  assert.ok(Object.keys(found).length > 15, JSON.stringify(found));
  assert.ok(found.undefined > 500 && found.undefined < 3500, JSON.stringify(found));
});

const LINK = '<link rel="abp-manifest" href="/m.json">';
const KNOWN = {
  'NUL among the tags begins the body, as the standard has it': [`\0${LINK}`, '/m.json', undefined],
  'a link between </head> and <body> is not in the head for us': [
    '</head>' + LINK,
    '/m.json',
    undefined,
  ],
  'a template with foreign elements is where we stop': [
    `<template><svg></svg></template>${LINK}`,
    '/m.json',
    undefined,
  ],
  'names of characters that no address needs are left as they are': [
    '<link rel="abp-manifest" href="/&lpar;">',
    '/(',
    '/&lpar;',
  ],
  'so are most of the names that may do without a semicolon': [
    '<link rel="abp-manifest" href="/?a&copy-b">',
    '/?a\u00a9-b',
    '/?a&copy-b',
  ],
};
for (const [what, [html, theirs, ours]] of Object.entries(KNOWN)) {
  test(`a known difference: ${what}`, async () => {
    const found = await page.evaluate((h) => [window.byBrowser(h).href, window.byUs(h).href], html);
    assert.deepEqual(found, [theirs, ours]);
  });
}

const discoverIn = (url, options = { allowPrivate: true }) =>
  page.evaluate(([u, o]) => window.discover(u, o), [url, options]);

test('a page discovers an app of another origin that lets itself be read, also after a redirect', async () => {
  for (const path of ['/open/page', '/open/away']) {
    assert.deepEqual(await discoverIn(elsewhere + path), {
      supported: true,
      manifest: MANIFEST,
      manifestUrl: `${elsewhere}/open/abp.json`,
      warnings: [],
    });
  }
});

test('a page that its server does not let others read cannot be discovered from another', async () => {
  const { supported, code } = await discoverIn(`${elsewhere}/closed/page`);
  assert.deepEqual([supported, code], [false, 'TRANSPORT_ERROR']);
});

test('in a page, private addresses are blocked by what the URL says', async () => {
  const { supported, code } = await discoverIn(`${elsewhere}/open/page`, {});
  assert.deepEqual([supported, code], [false, 'BLOCKED']);
});
