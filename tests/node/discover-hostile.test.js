// Discovery and hostile HTTP servers: what never ends is not read to its end, and nothing of
// another origin is asked where that is ruled out. Each test shows that the attack was fired, by
// what its server saw, and what it got: a typed result, and a connection that was closed.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { discover } from '../../parts/discovery/discover.js';
import {
  MiB,
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

describe('with sameOrigin nothing of another origin is asked', () => {
  /** Another origin, though the same server. */
  const elsewhere = (path) => `http://localhost:${web.server.address().port}${path}`;
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
    const taken = await web.seen[0].closed;
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
    assert.ok((await web.seen[0].closed) < BUFFERS);
  });

  test('the body after a head without a link is not read', async () => {
    const code = await codeOf(
      find({ '/': endless({ 'content-type': 'text/html' }, '<head></head>', LINK) }),
    );
    assert.equal(code, 'NO_MANIFEST');
    assert.ok((await web.seen[0].closed) < BUFFERS);
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
    const taken = await web.seen[1].closed;
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
    await web.seen[1].closed;
  });
  test('of a head that would unpack to 1 GB 50,000 characters are unpacked', async () => {
    const { result, growth } = await highest(() =>
      codeOf(find({ '/': sends(compressed('text/html'), bomb('<head>')) })),
    );
    assert.equal(result, 'NO_MANIFEST');
    assert.ok(growth < 128 * MiB, `${growth} bytes`);
    await web.seen[0].closed;
  });

  test('redirects without end are followed five times', async () => {
    let count = 0;
    web.routes = new Proxy({}, { get: () => redirect(`/${++count}`) });
    assert.equal(await codeOf(discover(`${web.origin}/`, LOCAL)), 'TOO_MANY_REDIRECTS');
    assert.deepEqual(paths(), ['/', '/1', '/2', '/3', '/4', '/5']);
    await Promise.all(web.seen.map(({ closed }) => closed));
  });

  test('redirects in a circle as well, also of a manifest', async () => {
    assert.equal(await codeOf(find({ '/': redirect('/') })), 'TOO_MANY_REDIRECTS');
    assert.equal(web.seen.length, 6);
    assert.equal(await codeOf(find({ '/abp.json': redirect('/abp.json') })), 'TOO_MANY_REDIRECTS');
    assert.equal(web.seen.length, 6 + 7);
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
    assert.ok((await web.seen[0].closed) < BUFFERS);
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
      while (web.seen.length < count) await turn();
      t.mock.timers.tick(10_000);
      assert.equal(await finding, 'TIMEOUT');
      await Promise.all(web.seen.map(({ closed }) => closed));
      assert.equal(web.seen.length, count);
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
      await Promise.all(web.seen.map(({ closed }) => closed));
      assert.equal(web.seen.length, 2);
      await assert.rejects(find({}, { signal: controller.signal }), (error) => error === reason);
      assert.equal(web.seen.length, 2); // aborted already: nothing was sent
    },
  );
});
