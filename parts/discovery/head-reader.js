/**
 * Reads the head of a page as a browser does. It takes one character at a time, so that it can stop
 * at the end of the head, however the text is split into chunks. It finds only tags that a browser
 * would find, and none in comments, scripts, styles, titles or templates, or after the head.
 *
 * The states are those of the HTML standard's tokenizer ("13.2.5 Tokenization"), as far as a head
 * needs them.
 * needs them.
 */

/**
 * @typedef {Generator<undefined, string, string>} Reading Returns the last character that it took.
 */

const LETTER = /^[a-z]/i;
const SPACES = '\t\n\f\r ';
/** Elements of a head that contain no text. All other elements begin the body. */
const OF_HEAD = new Set('html head base basefont bgsound link meta template'.split(' '));
/** Elements that contain only text, up to their own end tag. */
const TEXT_IN_HEAD = new Set(['title', 'style', 'noscript', 'noframes', 'script']);
const TEXT = new Set([...TEXT_IN_HEAD, 'textarea', 'iframe', 'noembed', 'xmp']);
/**
 * Elements in which others have a different meaning. Reading stops at a template that contains one.
 */
const OTHER_RULES = new Set(['svg', 'math', 'select', 'col', 'colgroup', 'plaintext', 'frameset']);

/** The named character references (of 2,231) that can occur in an address. */
const NAMED = new Map(
  Object.entries({
    amp: '&',
    lt: '<',
    gt: '>',
    quot: '"',
    apos: "'",
    AMP: '&',
    LT: '<',
    GT: '>',
    QUOT: '"',
    sol: '/',
    period: '.',
    colon: ':',
    quest: '?',
    equals: '=',
    num: '#',
    percnt: '%',
    lowbar: '_',
    commat: '@',
    semi: ';',
    comma: ',',
    plus: '+',
    excl: '!',
    Tab: '\t',
    NewLine: '\n',
    nbsp: '\u00a0',
  }),
);
/** The names that are valid without a semicolon. */
const BARE = /^(amp|lt|gt|quot|nbsp)/i;

/**
 * The characters for numeric references from 128 to 159 in browsers. Not every version of Node
 * decodes Windows-1252.
 */
const FROM_128 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/**
 * Lower case of ASCII letters only: the Kelvin sign is not a k.
 * @param {string} text
 */
const lower = (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/**
 * @param {string} digits
 * @param {number} base
 */
function numbered(digits, base) {
  const code = parseInt(digits, base);
  if (code >= 0x80 && code < 0xa0) return FROM_128[code - 0x80];
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : '\ufffd';
}

/**
 * Resolves the character references in the value of an attribute.
 * @param {string} value
 */
const decode = (value) =>
  value
    .replaceAll('\0', '\ufffd')
    .replace(
      /&(?:#x([\da-f]+);?|#(\d+);?|([a-z\d]+)(;|(?![=a-z\d])))/gi,
      (whole, hex, decimal, name, end) => {
        if (hex) return numbered(hex, 16);
        if (decimal) return numbered(decimal, 10);
        return ((end || BARE.test(name)) && NAMED.get(name)) || whole;
      },
    );

/**
 * The `href` of the first `<link rel="abp-manifest" href>`, and that of the first `<base>` before
 * it.
 * @typedef {{ href?: string, base?: string }} Found
 */

/**
 * Reads a head. Call `next()` once, then `next(c)` for each character until it is done.
 * @returns {Generator<undefined, Found, string>}
 */
export function* readHead() {
  /** @type {string | undefined} */
  let base;
  let templates = 0;
  let c = yield;
  for (;;) {
    if (c !== '<') {
      if (!templates && !SPACES.includes(c)) return {};
      c = yield;
      continue;
    }
    c = yield;
    const isEnd = c === '/';
    if (isEnd) c = yield;
    if (LETTER.test(c)) {
      let name = '';
      for (; !`${SPACES}/>`.includes(c); c = yield) name += c;
      name = lower(name);
      /** @type {Map<string, string>} */
      const attributes = new Map();
      yield* readAttributes(c, attributes);
      if (templates) {
        if (OTHER_RULES.has(name) && !isEnd) return {};
        if (name === 'template') templates += isEnd ? -1 : 1;
      } else if (isEnd) {
        // Other end tags have no effect.
        if (['head', 'body', 'html', 'br'].includes(name)) return {};
      } else if (!OF_HEAD.has(name) && !TEXT_IN_HEAD.has(name)) {
        return {};
      } else if (name === 'template') {
        templates++;
      } else if (name === 'base') {
        base ??= attributes.get('href');
      } else if (name === 'link') {
        const href = attributes.get('href');
        const rel = lower(attributes.get('rel') ?? '').split(/[\t\n\f\r ]+/);
        if (href && rel.includes('abp-manifest')) return { href, base };
      }
      if (!isEnd && TEXT.has(name)) yield* readText(name);
    } else if (isEnd || c === '?') {
      yield* readUntilEnd(c); // also `</>`, which browsers ignore
    } else if (c === '!') {
      yield* readDeclaration();
    } else {
      // A single `<` is text, and the next character may be another `<`.
      if (!templates) return {};
      continue;
    }
    c = yield;
  }
}

/**
 * Reads the rest of a tag, up to its `>`. If an attribute occurs twice, the first one counts.
 * @param {string} c the character after the tag's name
 * @param {Map<string, string>} [attributes] receives the attributes
 * @returns {Reading}
 */
function* readAttributes(c, attributes = new Map()) {
  for (;;) {
    while (c === '/' || SPACES.includes(c)) c = yield;
    if (c === '>') return c;
    let name = c; // even if it is `=`
    let value = '';
    for (c = yield; !`${SPACES}/>=`.includes(c); c = yield) name += c;
    while (SPACES.includes(c)) c = yield;
    if (c === '=') {
      do c = yield;
      while (SPACES.includes(c));
      if (c === '"' || c === "'") {
        const quote = c;
        for (c = yield; c !== quote; c = yield) value += c;
        c = yield;
      } else {
        for (; !`${SPACES}>`.includes(c); c = yield) value += c;
      }
    }
    name = lower(name);
    if (!attributes.has(name)) attributes.set(name, decode(value));
  }
}

/**
 * @param {string} c
 * @returns {Reading}
 */
function* readUntilEnd(c) {
  while (c !== '>') c = yield;
  return c;
}

/**
 * Reads a comment, a doctype, or anything else that ends like one.
 * @returns {Reading}
 */
function* readDeclaration() {
  let c;
  for (let dashes = 0; dashes < 2; dashes++) {
    c = yield;
    if (c !== '-') return yield* readUntilEnd(c);
  }
  for (let last = ''; ;) {
    c = yield;
    last = (last + c).slice(-4);
    if (last === '>' || last === '->' || last.endsWith('-->') || last === '--!>') return c;
  }
}

/**
 * Reads the text of an element, and its end tag. After `<!--` and `<script` in a script, the next
 * `</script>` does not end it.
 * @param {string} name
 * @returns {Reading}
 */
function* readText(name) {
  const end = new RegExp(`</${name}[\\t\\n\\f\\r />]$`);
  let hidden = 0;
  for (let last = ''; ;) {
    const c = yield;
    last = lower(last + c).slice(-`</${name}>`.length);
    if (end.test(last)) {
      if (hidden < 2) return yield* readAttributes(c);
      hidden = 1;
    } else if (name !== 'script') continue;
    else if (!hidden && last.endsWith('<!--')) hidden = 1;
    else if (hidden && last.endsWith('-->')) hidden = 0;
    else if (hidden === 1 && /<script[\t\n\f\r />]$/.test(last)) hidden = 2;
  }
}
