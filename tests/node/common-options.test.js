// What a program gives, in js/common: options, names, origins and addresses, each checked to the very value.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isLoopback, isPublic } from '../../js/common/addresses.js';
import * as types from '../../js/common/check-options.js';
import { checkOptions } from '../../js/common/option-mistakes.js';
import * as options from '../../js/common/options.js';
import { exactOrigin } from '../../js/common/origins.js';
import { similarName } from '../../js/common/similar-name.js';
import { warnings } from '../../js/common/warnings.js';

const refused = (message) => ({ name: 'AbpError', code: 'INVALID_PARAMS', message });
/** A list of what is warned of while a test runs. */
function listenToWarnings(t) {
  const said = [];
  warnings((message) => said.push(message));
  t.after(() => warnings(true));
  return said;
}
/** What loads a file on demand has had its chance. */
const turns = async () => {
  await import('../../js/common/option-mistakes.js');
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
};

describe('an option must be', () => {
  test('an object that is no list', () => {
    options.requireObject('connect', 'agent', {});
    for (const value of [[], null, undefined, 'x']) {
      assert.throws(
        () => options.requireObject('connect', 'agent', value),
        refused('agent of connect must be an object'),
      );
    }
  });

  test('a number from 0 on', () => {
    options.requireNumbers('connect', { a: 0, b: 5.5, c: Infinity, d: undefined });
    for (const value of [-1, NaN, '5', null]) {
      assert.throws(
        () => options.requireNumbers('connect', { ok: 1, timeout: value }),
        refused('timeout of connect must be a number that is not negative'),
      );
    }
  });

  test('a function', () => {
    options.requireFunctions('connect', { a() {}, b: undefined });
    for (const value of [{}, 'x', null, 0]) {
      assert.throws(
        () => options.requireFunctions('connect', { a() {}, onProgress: value }),
        refused('onProgress of connect must be a function'),
      );
    }
  });

  test('a signal, of whatever realm', () => {
    const { signal } = new AbortController();
    for (const value of [signal, undefined, null, { aborted: false, addEventListener() {} }]) {
      options.requireSignal('a call', value);
    }
    for (const value of [{ aborted: false }, { addEventListener() {} }, new EventTarget(), 1]) {
      assert.throws(
        () => options.requireSignal('a call', value),
        refused('signal of a call must be an AbortSignal'),
      );
    }
  });

  test('a list of texts', () => {
    for (const value of [undefined, [], ['a', 'b']]) {
      options.requireListOfTexts('a card', 'skills', value);
    }
    for (const value of ['a', [1], ['a', 1], null, { length: 0 }]) {
      assert.throws(
        () => options.requireListOfTexts('a card', 'skills', value),
        refused('skills of a card must be a list of strings'),
      );
    }
  });

  test('one that is known', () => {
    options.requireKnown('a card', { a: 1 }, ['a', 'b']);
    options.requireKnown('a card', {}, []);
    assert.throws(
      () => options.requireKnown('a card', { a: 1, c: 1 }, ['a', 'b']),
      refused('a card has no option c; it has: a, b'),
    );
  });
});

describe('the type of an option', () => {
  test('is that of its words', () => {
    for (const [type, right, wrong] of [
      ['a boolean or an object', [true, {}, []], ['x', 1, () => {}]],
      ['a number', [1, 0.5, Infinity], [-1, 'x', true]],
      ['a function', [() => {}], [{}, 1]],
      ['a string', ['', 'x'], [1, {}]],
      ['"frames" or "none"', ['frames', 'none'], ['frame', 'or', 1, Symbol('frames')]],
      [types.SIGNAL, [new AbortController().signal], [{}, 'x', () => {}]],
      [types.NUMBERS, [{}, { a: 1, b: 0 }, { a: undefined }], [{ a: 'x' }, { a: -1 }, 'x', 1]],
      [types.ANYTHING, ['x', 1, {}, () => {}], []],
    ]) {
      for (const value of right) assert.ok(types.isOf(type, value), `${type}: ${String(value)}`);
      for (const value of wrong) assert.ok(!types.isOf(type, value), `${type}: ${String(value)}`);
      // What is falsy is taken for absent.
      for (const value of [undefined, null, false, 0, '']) assert.ok(types.isOf(type, value));
    }
    assert.ok(!types.isOf(undefined, 1));
    assert.ok(!types.isOf(undefined, undefined));
  });

  test('that no option fits is named, and so is an option that nothing reads', () => {
    const known = { a: 'a number', b: 'a string' };
    assert.equal(types.misfit({ a: 1, b: 'x' }, known), undefined);
    assert.equal(types.misfit({ a: 1, c: 1 }, known), 'c');
    assert.equal(types.misfit(undefined, known), undefined);
    assert.equal(types.misfit(null, known), undefined);
    assert.equal(types.requireTypes('connect', { a: 1 }, known), undefined);
    assert.equal(types.requireTypes('connect', { c: 1 }, known), 'c');
    assert.throws(
      () => types.requireTypes('connect', { a: 'x' }, known),
      refused('a of connect must be a number'),
    );
    assert.equal(types.mistyped('x', 'y', 'z').message, 'y of x must be z');
  });

  test('is looked at once more where something is not read, or there are limits', async (t) => {
    const said = listenToWarnings(t);
    const known = { agent: 'an object', limits: types.NUMBERS };
    types.requireOptions('a first', { agent: {} }, known);
    types.requireOptions('a first', undefined, known);
    await turns();
    assert.deepEqual(said, []);
    types.requireOptions('a second', { agnet: {} }, known);
    await turns();
    assert.deepEqual(said.splice(0), [
      'abp-bridge: a second has no option agnet: did you mean agent? (docs/errors.md#warnings)',
    ]);
    types.requireOptions('a third', { limits: { maxCall: 1 } }, known);
    await turns();
    assert.deepEqual(said.splice(0), [
      'abp-bridge: limits has no option maxCall: did you mean maxCalls? (docs/errors.md#warnings)',
    ]);
    assert.throws(() => types.requireOptions('x', { agent: 1 }, known), refused(/^agent of x/));
  });

  test('is told of all options, also of limits', (t) => {
    const said = listenToWarnings(t);
    const known = { a: 'a number', limits: types.NUMBERS };
    checkOptions('a user', { a: 1, b: undefined }, known);
    checkOptions('a user', { b: 1 }, known);
    checkOptions('another', { zzzzzz: 1 }, known);
    assert.deepEqual(said, [
      'abp-bridge: a user has no option b: did you mean a? (docs/errors.md#warnings)',
      'abp-bridge: another has no option zzzzzz: it has a, limits (docs/errors.md#warnings)',
    ]);
    assert.throws(() => checkOptions('a user', { a: 'x' }, known), refused(/^a of a user must be/));
    assert.throws(
      () => checkOptions('a user', { limits: { maxCalls: 'x' } }, { limits: types.ANYTHING }),
      refused('maxCalls of limits must be a number'),
    );
    checkOptions('a user', { limits: { grace: 0, heartbeat: 1, firstNumber: 1 } }, known);
    assert.equal(said.length, 2);
    // Limits are only those of whoever has some.
    checkOptions('a third', { limits: { a: 1 } }, { limits: undefined });
    assert.equal(said.length, 3);
    assert.match(said[2], /a third has no option limits/);
    checkOptions('a fourth', { ['x'.repeat(1000)]: 1 }, known);
    assert.ok(said[3].includes(`no option ${'x'.repeat(64)}: it has`));
  });

  test('is named for a hundred options, and no more', async (t) => {
    const said = listenToWarnings(t);
    // What has been warned of is remembered for all: this one remembers nothing yet.
    const fresh = await import('../../js/common/option-mistakes.js?fresh');
    for (let i = 0; i < 200; i++) fresh.checkOptions('a crowd', { [`unknown${i}`]: 1 }, {});
    assert.equal(said.length, 100);
  });
});

describe('the name that was probably meant', () => {
  const names = ['export.pdf', 'list', 'describe', 'a.list.all'];
  for (const [given, meant] of [
    ['list', 'list'],
    ['LIST', 'list'],
    ['lis', 'list'],
    ['llist', 'list'],
    ['lost', 'list'],
    ['listes', 'list'],
    ['pdf', 'export.pdf'],
    ['PDF', 'export.pdf'],
    ['all', 'a.list.all'],
    ['desrcibe', 'describe'],
    ['dscrib', 'describe'],
    ['descri', 'describe'],
    ['descr', undefined],
    ['nothing', undefined],
    ['df', undefined],
    ['x'.repeat(65), undefined],
  ]) {
    test(`${given.slice(0, 20)}: ${meant}`, () => assert.equal(similarName(given, names), meant));
  }

  test('is the nearest, in the case that it has', () => {
    assert.equal(similarName('cats', ['Bats', 'CATS', 'cats!']), 'CATS');
    assert.equal(similarName('cat', ['ct!!', 'Cats']), 'Cats');
    assert.equal(similarName('abcd', ['badc', 'acbd']), 'acbd');
    // One edit, then the last part of a name, then two edits.
    assert.equal(similarName('save', ['sv', 'file.save']), 'file.save');
    assert.equal(similarName('save', ['sv', 'file.save', 'sav']), 'sav');
    assert.equal(similarName('ab', ['xabyz']), undefined);
    // A letter too many, one missing, another one: each is nearer than the last part of a name.
    for (const given of ['caart', 'crt', 'cxrt']) {
      assert.equal(similarName(given, [`x.${given}`, 'cart']), 'cart');
    }
  });

  test('has 64 characters at most', () => {
    const long = 'x'.repeat(64);
    assert.equal(similarName(long, [long]), long);
    assert.equal(similarName(`${long}x`, [`${long}x`]), undefined);
  });
});

describe('an origin', () => {
  test('is exact, in the form of an event’s', () => {
    for (const [given, origin] of [
      ['https://app.example', 'https://app.example'],
      ['https://app.example/', 'https://app.example'],
      ['HTTPS://App.Example:443', 'https://app.example'],
      ['http://localhost:8080', 'http://localhost:8080'],
    ]) {
      assert.equal(exactOrigin(given), origin);
    }
  });

  test('is nothing else; the error says which may be meant', () => {
    for (const [given, address, hint] of [
      ['https://app.example/path', undefined, 'https://app.example'],
      ['https://app.example/?q', undefined, 'https://app.example'],
      ['https://*.example', undefined, 'https://app.example:8443'],
      ['https://app.example.', undefined, 'https://app.example:8443'],
      ['*', 'http://other.example/a', 'http://other.example'],
      ['null', undefined, 'https://app.example:8443'],
      ['data:text/html,x', undefined, 'https://app.example:8443'],
      ['data:text/html,x', 'https://other.example/a', 'https://other.example'],
      [undefined, undefined, 'https://app.example:8443'],
      [new URL('https://app.example'), undefined, 'https://app.example:8443'],
      ['app.example', 'no address', 'https://app.example:8443'],
    ]) {
      assert.throws(
        () => exactOrigin(given, address),
        refused(
          `${JSON.stringify(given)} is not an origin, such as "${hint}" (docs/errors.md#not-an-origin)`,
        ),
      );
    }
  });
});

describe('an address is on the public internet', () => {
  /** The first and the last of each block that is not, and their neighbours. */
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
  for (const [first, last, before, after] of BLOCKS) {
    test(`outside of ${first} to ${last}`, () => {
      assert.deepEqual([first, last].map(isPublic), [false, false]);
      for (const neighbour of [before, after]) if (neighbour) assert.ok(isPublic(neighbour));
    });
  }

  test('in every spelling', () => {
    for (const host of ['167772160', '0xA.0.0.0', '012.0.0.0', '10.0', '::ffff:a00:1', '::1']) {
      assert.equal(isPublic(host), false, host);
    }
    for (const host of ['134744072', '0x8.8.8.8', '2000::1', '2600::', '2600:1:2:3:4:5:6:7']) {
      assert.equal(isPublic(host), true, host);
    }
    // The middle of an address counts, too.
    assert.equal(isPublic('[::1:ffff:8.8.8.8]'), false);
    assert.equal(isPublic('[64:ff9b:1::8.8.8.8]'), false);
    assert.equal(isPublic('::ffff:8.8.8.8'), true);
  });

  test('unless it cannot be read', () => {
    for (const host of ['fe80::1%eth0', '', 'a b', '[::', '1.2.3.4.5']) {
      assert.equal(isPublic(host), false, host);
    }
  });

  test('if its name may be', () => {
    for (const host of ['app.example', 'app.example.', 'a.local.example', 'local.example', '1.a']) {
      assert.equal(isPublic(host), true, host);
    }
    for (const name of ['localhost', 'a.localhost', 'a.local', 'a.internal', 'a.home.arpa']) {
      assert.equal(isPublic(name), false, name);
      assert.equal(isPublic(`${name}.`), false, name);
      assert.equal(isPublic(`${name}..`), false, name);
    }
    for (const host of ['intranet', 'intranet.', '1.local'])
      assert.equal(isPublic(host), false, host);
  });

  test('and this machine is known by its own', () => {
    for (const host of [
      ...['::1', '[::1]', '127.0.0.1', '127.255.0.13', '::ffff:127.0.0.1'],
      ...['localhost', 'LOCALHOST', 'a.localhost', 'a.b.localhost'],
    ]) {
      assert.equal(isLoopback(host), true, host);
    }
    for (const host of [
      ...['::11', '1::1', '127.0.0', '127.0.0.1.example', '10.127.0.0.1', '128.0.0.1'],
      ...[
        'alocalhost',
        'localhost.example',
        'a.localhost.example',
        '::fffe:127.0.0.1',
        '127.0.0.x',
      ],
    ]) {
      assert.equal(isLoopback(host), false, host);
    }
  });
});
