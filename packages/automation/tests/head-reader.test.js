// What a head says, read one character at a time.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readHead } from '../src/discovery/head-reader.js';

/** What is found in a page. */
function read(text) {
  const reader = readHead();
  reader.next('');
  for (const character of text) {
    const { done, value } = reader.next(character);
    if (done) return value;
  }
  return undefined;
}
const LINK = '<link rel="abp-manifest" href="m">';
const hrefOf = (href) => read(`<link rel="abp-manifest" href="${href}">`).href;

describe('a numeric character reference', () => {
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
  };
  for (const [reference, character] of Object.entries(cases)) {
    test(`${reference} is U+${character.codePointAt(0).toString(16)}`, () => {
      assert.equal(hrefOf(`a${reference}b`), `a${character}b`);
    });
  }
});

test('named references are read where browsers read them', () => {
  assert.equal(hrefOf('&lowbar;&commat;&semi;&comma;&plus;&excl;&Tab;'), '_@;,+!\t');
  assert.equal(hrefOf('a?b=1&amp;c=2&copy=3&ampd=4'), 'a?b=1&c=2&copy=3&ampd=4');
});

describe('a link counts', () => {
  for (const name of ['title', 'style', 'noscript', 'noframes', 'script']) {
    test(`after <${name}>, but not within it`, () => {
      assert.equal(read(`<${name}>${LINK}</${name}><link rel="abp-manifest" href="n">`).href, 'n');
    });
  }
  test('after a template, but not within it, nor within two', () => {
    const within = `<template>a<p>${LINK}</p><template>${LINK}</template>${LINK}</template>`;
    assert.equal(read(`${within}<link rel="abp-manifest" href="n">`).href, 'n');
  });
});

describe('a head is not read any further', () => {
  for (const name of ['svg', 'math', 'select', 'col', 'colgroup', 'plaintext', 'frameset']) {
    test(`at a template with <${name}>, whose rules are others`, () => {
      assert.deepEqual(read(`<template><${name}></template>${LINK}`), {});
    });
    test(`but at one with </${name}> it is`, () => {
      assert.equal(read(`<template></${name}></template>${LINK}`).href, 'm');
    });
  }
  for (const what of ['text', '<p>', '</head>', '</body>', '</html>', '</br>', '< ', '<iframe>']) {
    test(`at ${what}`, () => assert.deepEqual(read(`${what}${LINK}`), {}));
  }
  for (const what of [
    '\t\n\f\r ',
    '</p>',
    '</>',
    '<!-- > -->',
    '<?x>',
    '<meta>',
    '<base href=x>',
  ]) {
    test(`but at ${JSON.stringify(what)} it is`, () => assert.equal(read(what + LINK).href, 'm'));
  }
});
