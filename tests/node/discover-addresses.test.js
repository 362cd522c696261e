// Discovery asks no address that is not public, in whatever form it is written and wherever a name,
// a redirect or a link leads.
import assert from 'node:assert/strict';
import { Socket, isIP } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { discover, isPublic } from '../../parts/discovery/discover.js';
import {
  LINK,
  MANIFEST,
  LOCAL,
  web,
  useWeb,
  paths,
  json,
  redirect,
  codeOf,
} from '../support/discovery.js';

useWeb();

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
  const at = (name, path = '/') => `http://${name}:${web.server.address().port}${path}`;

  test('public ones are read, and only those', async () => {
    for (const [name, address] of [
      ['app.example', '8.8.8.8'],
      ['six.example', '2606:4700::1'],
    ]) {
      reset();
      web.routes = { '/': LINK, '/abp.json': JSON.stringify(MANIFEST) };
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
      web.routes = { '/': LINK, '/abp.json': JSON.stringify(MANIFEST) };
      const { code, reason } = await discover(at(host));
      assert.equal(code, 'BLOCKED');
      assert.match(reason, /allowPrivate: true/);
      assert.deepEqual([web.seen.length, dialled], [0, []]);
      const found = await discover(at(host), LOCAL);
      assert.ok(found.supported, found.reason);
      assert.equal(web.seen.length, 2);
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
      assert.deepEqual([asked, dialled, web.seen], [[`${name}.example`], [], []]);
    });
  }

  test('over TLS the same holds: our server speaks none, but it is the checked address that is dialled', async () => {
    reset();
    const secure = (name) => at(name).replace('http:', 'https:');
    assert.equal(await codeOf(discover(secure('app.example'), { lookup })), 'TRANSPORT_ERROR');
    assert.equal(await codeOf(discover(secure('inside.example'), { lookup })), 'BLOCKED');
    assert.deepEqual(
      [asked, dialled, web.seen],
      [['app.example', 'inside.example'], ['8.8.8.8'], []],
    );
  });

  test('a redirect to one, by its address or by a name', async () => {
    for (const host of ['127.0.0.1', 'localhost', 'inside.example', '[::ffff:7f00:1]']) {
      reset();
      web.seen = [];
      web.routes = { '/': redirect(at(host, '/secret')), '/secret': LINK };
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
      web.seen = [];
      web.routes = { '/': redirect(location) };
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
      web.seen = [];
      web.routes = { ...attack, '/secret': json(JSON.stringify(MANIFEST)) };
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
    web.routes = { '/': '<head></head>' };
    // One connection: one answer, which is checked and dialled. The second answer is never asked
    // for.
    assert.equal(await codeOf(discover(at('app.example'), { lookup: rebinding })), 'NO_MANIFEST');
    assert.deepEqual([asked, dialled], [['app.example'], ['8.8.8.8']]);
    // The next connection gets the private answer, and is not made.
    assert.equal(await codeOf(discover(at('app.example'), { lookup: rebinding })), 'BLOCKED');
    assert.deepEqual([asked.length, dialled, paths()], [2, ['8.8.8.8'], ['/']]);
    // The same between the page and its manifest.
    reset();
    web.seen = [];
    web.routes = { '/': LINK, '/abp.json': JSON.stringify(MANIFEST) };
    assert.equal(await codeOf(discover(at('app.example'), { lookup: rebinding })), 'BLOCKED');
    assert.deepEqual([dialled, paths()], [['8.8.8.8'], ['/']]);
  });
});
