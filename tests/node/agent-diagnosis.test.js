// Why a handshake had no answer, as far as a page can know: what is said of each frame, without a browser.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { errorOf, unreachableError } from '../../js/agent/diagnosis.js';
import { AbpError } from '../../js/common/errors.js';
import { useClock } from '../support/clock.js';
import { usePage } from '../support/page.js';

const APP = 'https://app.example';
const AGENT = 'https://agent.example';
const onPage = (t, more) =>
  usePage(t, { origin: AGENT, location: { protocol: 'https:' }, ...more });

/** What a page sees of a frame's document if it is of another origin. */
const FOREIGN = {
  get origin() {
    throw new Error('of another origin');
  },
  get location() {
    throw new Error('of another origin');
  },
};
/** What a page sees of a frame's document of its own origin. */
const visible = (href, responseStatus, origin = AGENT) => ({
  origin,
  location: { href },
  performance: {
    getEntriesByType: (type) =>
      type === 'navigation' && responseStatus !== undefined ? [{ responseStatus }] : [],
  },
});
/** An iframe, with the attributes that are given. */
const frame = (contentWindow, { src = `${APP}/editor`, ...attributes } = {}) => {
  const has = { ...(src && { src }), ...attributes };
  return {
    src,
    contentWindow,
    hasAttribute: (name) => name in has,
    getAttribute: (name) => has[name] ?? null,
  };
};
const refusal = (error) => ({ type: 'initialize-result', payload: { success: false, error } });
const TAKEN = refusal({ code: 'ALREADY_INITIALIZED', message: 'Ann is here', retryable: true });

/** What is known, where nothing else is said: an app behind a port that never answered. */
const known = (more) => ({ origin: '', limit: 0, heard: undefined, unread: 0, ...more });
const reasonFor = async (more, isWaiting) => {
  const { message } = await errorOf(known(more), isWaiting);
  const [, reason] = /^The app did not answer with a session: (.*)$/.exec(message);
  return reason;
};

describe('the error of a handshake that had no answer', () => {
  test('says how long it waited, and may be tried again', async () => {
    const error = await errorOf(known({ limit: 250 }));
    assert.ok(error instanceof AbpError);
    assert.deepEqual([error.code, error.retryable], ['TIMEOUT', true]);
    assert.deepEqual([error.cause, error.details], [undefined, undefined]);
    assert.equal(
      error.message,
      'The app did not answer with a session within 250 ms: nothing at the other end calls expose (docs/errors.md#no-answer)',
    );
  });

  test('has the last refusal as its cause, and says what to do where another client has the session', async () => {
    const { message, cause } = await errorOf(known({ heard: TAKEN, unread: 1 }));
    assert.deepEqual([cause.code, cause.message], ['ALREADY_INITIALIZED', 'Ann is here']);
    assert.equal(
      message,
      'The app did not answer with a session: it refused, with ALREADY_INITIALIZED: Ann is here. close() the client that has the session (docs/errors.md#already-connected)',
    );
    const busy = refusal({ code: 'BUSY', message: 'not now', retryable: true });
    assert.equal(
      await reasonFor({ heard: busy }),
      'it refused, with BUSY: not now (docs/errors.md#no-answer)',
    );
  });

  test('tells an app that speaks JSON-RPC, and one whose messages cannot be read', async () => {
    assert.match(await reasonFor({ heard: { jsonrpc: '2.0' }, unread: 1 }), /^it speaks JSON-RPC/);
    const { message, details } = await errorOf(known({ unread: 2 }));
    assert.match(message, /: its messages could not be read: they are malformed, or longer than/);
    assert.deepEqual(details, { unread: 2 });
  });
});

describe('of an app in an iframe it says', () => {
  for (const [what, given, said] of [
    [
      'where the frame speaks from, before all that can be seen',
      { iframe: frame(visible('about:blank')), stranger: 'https://x.example' },
      /^the iframe's messages come from https:\/\/x\.example, not from https:\/\/app\.example \(docs\/errors\.md#wrong-origin\)$/,
    ],
    [
      'that the server answered with an error',
      { iframe: frame(visible(`${APP}/a`, 400, APP)) },
      /^the server answered https:\/\/app\.example\/a with status 400 \(docs\/errors\.md#frame-not-found\)$/,
    ],
    [
      'nothing of a server that answered well',
      { iframe: frame(visible(`${APP}/a`, 399, APP)) },
      /^its page must load from https:\/\/app\.example, and call expose\(app, \{ origins: \["https:\/\/agent\.example"\] \}\)/,
    ],
    [
      'nothing of a server whose status this browser does not tell',
      { iframe: frame(visible(`${APP}/a`, undefined, APP)) },
      /^its page must load from/,
    ],
    [
      'nothing of a status where the document has no performance',
      { iframe: frame({ origin: APP, location: { href: `${APP}/a` } }) },
      /^its page must load from/,
    ],
    [
      'that the frame is empty',
      { iframe: frame(visible('about:blank')) },
      /^the iframe is empty: its page has not begun to load \(docs\/errors\.md#frame-not-found\)$/,
    ],
    [
      'what the frame shows instead',
      { iframe: frame(visible(`${AGENT}/other`)) },
      /^the iframe shows https:\/\/agent\.example\/other, which is not at https:\/\/app\.example \(docs\/errors\.md#wrong-origin\)$/,
    ],
    [
      'nothing of what a document shows that has an origin and no address',
      { iframe: frame({ origin: AGENT }) },
      /^its page must load from/,
    ],
    [
      'that its src is of another origin',
      { iframe: frame(FOREIGN, { src: 'https://y.example/a' }) },
      /^the iframe's src is at https:\/\/y\.example, but connect was given origin: https:\/\/app\.example \(docs\/errors\.md#wrong-origin\)$/,
    ],
    [
      'nothing of a src that no server answers',
      { iframe: frame(FOREIGN, { src: 'blob:https://y.example/a' }) },
      /^its page must load from/,
    ],
    [
      'nothing of a src that begins with another scheme',
      { iframe: frame(FOREIGN, { src: 'chrome+https://y.example/a' }) },
      /^its page must load from/,
    ],
    [
      'nothing of a src whose scheme goes on',
      { iframe: frame(FOREIGN, { src: 'httpsx://y.example/a' }) },
      /^its page must load from/,
    ],
    [
      'nothing of a src that is no address',
      { iframe: frame(FOREIGN, { src: 'http://' }) },
      /^its page must load from/,
    ],
    [
      'that a browser may block it, in a page that came safely',
      { iframe: frame(FOREIGN, { src: 'http://app.example/a' }), origin: 'http://app.example' },
      /^browsers may block an http: frame in an https: page \(docs\/errors\.md#frame-not-found\)$/,
    ],
    [
      'that it has an origin after all, without a sandbox',
      { iframe: frame(FOREIGN), origin: 'null' },
      /^the iframe has no sandbox: its origin is https:\/\/app\.example, not "null" \(docs\/errors\.md#wrong-origin\)$/,
    ],
    [
      'what its page must do, in a sandbox',
      { iframe: frame(FOREIGN, { sandbox: '' }), origin: 'null' },
      /^its page must load, and call expose\(app, \{ origins: \["https:\/\/agent\.example"\] \}\)\. Its console says more \(docs\/errors\.md#no-answer\)$/,
    ],
    [
      'what its page must do, where the frame has no window any more',
      { iframe: frame(null) },
      /^its page must load from/,
    ],
  ])
    test(what, async (t) => {
      onPage(t);
      assert.match(await reasonFor({ origin: APP, ...given }), said);
    });

  test('nothing of an http: frame in an http: page', async (t) => {
    onPage(t, { location: { protocol: 'http:' } });
    const iframe = frame(FOREIGN, { src: 'http://app.example/a' });
    assert.match(await reasonFor({ iframe, origin: 'http://app.example' }), /^its page must load/);
  });

  test('that a page without an origin cannot be listed, and nothing of it to a port', async (t) => {
    onPage(t, { origin: 'null' });
    const iframe = frame(FOREIGN);
    const given = { origin: APP, stranger: 'https://x.example' };
    assert.match(await reasonFor({ iframe, ...given }), /^this page has no origin/);
    assert.match(await reasonFor(given), /^nothing at the other end calls expose/);
  });
});

describe('a frame that the browser does not load', () => {
  /** A page whose browser reports what policies have blocked. */
  const reporting = (t, reports) => {
    const observers = [];
    onPage(t, {
      ReportingObserver: class {
        constructor(tell, options) {
          Object.assign(this, { tell, options, isOn: undefined });
          observers.push(this);
        }
        observe() {
          this.isOn = true;
          if (reports.length) this.tell(reports);
        }
        disconnect() {
          this.isOn = false;
        }
      },
    });
    return observers;
  };
  const blocked = (body, type = 'csp-violation') => ({
    type,
    body: { disposition: 'enforce', blockedURL: `${APP}/editor`, ...body },
  });
  const CSP = blocked({ effectiveDirective: 'frame-src' });
  const COEP = blocked({ destination: 'iframe' }, 'coep');

  for (const [what, reports, said] of [
    [
      'because of the page’s own policy',
      [CSP],
      /^this page's Content Security Policy blocks the frame: add https:\/\/app\.example to frame-src \(docs\/errors\.md#frame-not-found\)$/,
    ],
    [
      'because the page is isolated',
      [{ type: 'deprecation' }, COEP, CSP],
      /^this page's Cross-Origin-Embedder-Policy blocks the frame/,
    ],
    [
      'because of nothing else: policies that only report, other things than frames, other origins',
      [
        { type: 'intervention' },
        blocked({ effectiveDirective: 'frame-src', disposition: 'report' }),
        blocked({ effectiveDirective: 'img-src', destination: 'image' }),
        blocked({ effectiveDirective: 'frame-src', blockedURL: 'https://y.example/' }),
        blocked({ effectiveDirective: 'frame-src', blockedURL: 'inline' }),
      ],
      /^its page must load from/,
    ],
  ])
    test(what, async (t) => {
      const observers = reporting(t, reports);
      assert.match(await reasonFor({ iframe: frame(FOREIGN), origin: APP }), said);
      assert.deepEqual(observers[0].options, { buffered: true });
    });

  test('is known before what is seen in the frame, and after what the app has said', async (t) => {
    reporting(t, [CSP]);
    const given = { iframe: frame(visible('about:blank')), origin: APP };
    assert.match(await reasonFor(given), /Content Security Policy blocks/);
    assert.match(await reasonFor({ ...given, heard: TAKEN }), /^it refused/);
  });

  test('is waited for as long as a browser takes to hand over its reports', async (t) => {
    const observers = reporting(t, []);
    const clock = useClock(t);
    const settled = mock.fn();
    const asked = reasonFor({ iframe: frame(FOREIGN), origin: APP }).finally(settled);
    clock.advance(49);
    await new Promise(setImmediate);
    assert.equal(settled.mock.callCount(), 0);
    assert.equal(observers[0].isOn, true);
    clock.advance(1);
    assert.match(await asked, /^its page must load from/);
    assert.equal(observers[0].isOn, false);
  });

  test('is not asked about where the frame has no address', async (t) => {
    const observers = reporting(t, [CSP]);
    const iframe = frame(visible('about:blank'), { src: '' });
    assert.match(await reasonFor({ iframe, origin: APP }), /^the iframe is empty/);
    assert.deepEqual(observers, []);
  });
});

describe('the console says early', () => {
  /** What is said while the answer is waited for. */
  const warningOf = async (t, given, isWaiting = () => true) => {
    const warn = t.mock.method(console, 'warn', () => {});
    await reasonFor({ origin: APP, ...given }, isWaiting);
    const said = warn.mock.calls.map(({ arguments: [text] }) => text);
    assert.ok(said.length <= 1);
    return said[0];
  };
  const EMPTY = visible('about:blank');

  for (const [what, given, said] of [
    ['that the app refused', { heard: TAKEN }, /yet: it refused, with ALREADY_INITIALIZED/],
    ['that the app speaks JSON-RPC', { heard: { jsonrpc: '2.0' } }, /yet: it speaks JSON-RPC/],
    [
      'that the frame was given no page',
      { iframe: frame(EMPTY, { src: '' }) },
      /yet: the iframe is empty/,
    ],
    [
      'that the frame shows another page',
      { iframe: frame(visible(`${AGENT}/other`)) },
      /yet: the iframe shows/,
    ],
    [
      'that the frame’s address is wrong, also while it loads',
      { iframe: frame(EMPTY, { src: 'https://y.example/a' }) },
      /yet: the iframe is empty/,
    ],
    [
      'that its src is of another origin',
      { iframe: frame(FOREIGN, { src: 'https://y.example/a' }) },
      /yet: the iframe's src is at/,
    ],
    ['nothing of a page that still loads', { iframe: frame(EMPTY) }, undefined],
    ['nothing where nothing is known', { iframe: frame(FOREIGN) }, undefined],
    ['nothing where nothing is known of a port', {}, undefined],
    [
      'nothing where nothing is known of a frame that has gone',
      { iframe: frame(null), stranger: undefined },
      undefined,
    ],
  ])
    test(what, async (t) => {
      onPage(t);
      const text = await warningOf(t, given);
      if (said) assert.match(text, said);
      else assert.equal(text, undefined);
    });

  test('that a policy blocks a frame that seems to load', async (t) => {
    onPage(t, {
      ReportingObserver: class {
        constructor(tell) {
          this.observe = () => {
            const body = { disposition: 'enforce', effectiveDirective: 'frame-src' };
            tell([{ type: 'csp-violation', body: { ...body, blockedURL: APP } }]);
          };
          this.disconnect = () => {};
        }
      },
    });
    const text = await warningOf(t, { iframe: frame(EMPTY) });
    assert.match(text, /^abp-bridge: the app has not answered yet: this page's Content Security/);
  });

  test('nothing once the answer is not waited for any more', async (t) => {
    assert.equal(await warningOf(t, { heard: TAKEN }, () => undefined), undefined);
  });
});

test('an app that cannot be reached lacks something, and each has its own words', () => {
  for (const [lacking, code, message] of [
    ['port', 'TRANSPORT_ERROR', /^This port was closed with its session: give connect a new port/],
    ['document', 'INVALID_PARAMS', /^The iframe is not in a document: append it first$/],
    [
      'allow-scripts',
      'INVALID_PARAMS',
      /^The iframe's sandbox lacks allow-scripts: add it \(docs\/errors\.md#sandbox\)$/,
    ],
    [
      'allow-same-origin',
      'INVALID_PARAMS',
      /^The iframe's sandbox lacks allow-same-origin: add it, or connect with origin: 'null' \(docs\/errors\.md#sandbox\)$/,
    ],
  ]) {
    const error = unreachableError(lacking);
    assert.equal(error.code, code);
    assert.match(error.message, message);
  }
});
