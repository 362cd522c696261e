// Which addresses are on the public internet: only these are asked for an app that somebody names.
// discover-addresses.test.js tries what becomes of the others.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isPublic } from '../../parts/discovery/discover.js';

const areAll = (expected, hosts) => {
  for (const host of hosts) assert.equal(isPublic(host), expected, host);
};

/**
 * Blocks that are not public: the first address and the last one, with what is before and after
 * them.
 */
const BLOCKS = [
  ['0.0.0.0', '0.255.255.255', undefined, '1.0.0.0'],
  ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
  ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
  ['192.0.2.0', '192.0.2.255', '192.0.1.255', '192.0.3.0'],
  ['192.88.99.0', '192.88.99.255', '192.88.98.255', '192.88.100.0'],
  ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
  ['198.51.100.0', '198.51.100.255', '198.51.99.255', '198.51.101.0'],
  ['203.0.113.0', '203.0.113.255', '203.0.112.255', '203.0.114.0'],
  ['224.0.0.0', '255.255.255.255', '223.255.255.255', undefined],
  ['[1fff::]', '[1fff:ffff::]', undefined, '[2000::]'],
  ['[2001::]', '[2001:1ff:ffff::]', '[2000:ffff::]', '[2001:200::]'],
  ['[2001:db8::]', '[2001:db8:ffff::]', '[2001:db7:ffff::]', '[2001:db9::]'],
  ['[2002::]', '[2002:ffff::]', '[2001:ffff::]', '[2003::]'],
  ['[3fff::]', '[3fff:fff:ffff::]', '[3ffe:ffff::]', '[3fff:1000::]'],
  ['[4000::]', '[ffff::]', '[3fff:ffff::]', undefined],
  ['[::ffff:10.0.0.0]', '[::ffff:10.255.255.255]', '[::ffff:9.255.255.255]', '[::ffff:11.0.0.0]'],
  ['[64:ff9b::a00:0]', '[64:ff9b::aff:ffff]', '[64:ff9b::9ff:ffff]', '[64:ff9b::b00:0]'],
];

describe('an address is public', () => {
  for (const [first, last, before, after] of BLOCKS) {
    test(`outside of ${first} to ${last}`, () => {
      areAll(false, [first, last]);
      areAll(true, [before, after].filter(Boolean));
    });
  }

  test('or not in every spelling', () => {
    areAll(false, ['167772160', '0xA.0.0.0', '012.0.0.0', '10.0', '::ffff:a00:1', '::1']);
    areAll(true, ['134744072', '0x8.8.8.8', '2000::1', '2600:1:2:3:4:5:6:7', '::ffff:8.8.8.8']);
    // The middle of an address counts, too.
    areAll(false, ['[::1:ffff:8.8.8.8]', '[64:ff9b:1::8.8.8.8]']);
  });

  test('only if it can be read', () =>
    areAll(false, ['fe80::1%eth0', '', 'a b', '[::', '1.2.3.4.5']));

  test('if its name may be one of the public internet', () => {
    areAll(true, ['app.example', 'app.example.', 'a.local.example', 'local.example', '1.a']);
    const names = ['localhost', 'a.localhost', 'a.local', 'a.internal', 'a.home.arpa'];
    areAll(
      false,
      names.flatMap((name) => [name, `${name}.`, `${name}..`]),
    );
    areAll(false, ['intranet', 'intranet.', '1.local']);
  });
});
