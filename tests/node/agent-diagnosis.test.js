// Why a handshake had no answer, as far as a page can know: what connect and the console say of
// each frame, without a browser.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { AbpError, connect } from '../../parts/main/index.js';
import { useClock } from '../support/clock.js';
import { FramedApp, ORIGIN as APP } from '../support/page.js';
import { AGENT as agent, closeAfter } from '../support/pair.js';
import { Raw } from '../support/raw.js';

const AGENT = 'https://agent.example';
const turn = () => new Promise(setImmediate);
const turns = async () => {
  for (let i = 0; i < 20; i++) await turn();
};

// What says why is loaded when that has happened: here before the clock is held.
before(async () => {
  const { port1 } = new MessageChannel();
  await assert.rejects(connect(port1, { agent, timeout: 1 }), { code: 'TIMEOUT' });
});

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
const EMPTY = visible('about:blank');
const refusal = (error) => ({ type: 'initialize-result', payload: { success: false, error } });
const TAKEN = refusal({ code: 'ALREADY_INITIALIZED', message: 'Ann is here', retryable: true });

/** An app behind a port, played by hand. */
function portApp() {
  const { port1, port2 } = new MessageChannel();
  closeAfter(() => port1.close());
  const app = new Raw(port1);
  app.say = (data) => port1.postMessage(data);
  app.connect = (options) => connect(port2, { agent, ...options });
  return app;
}
/** A frame of a page at AGENT. */
const frameApp = (t, frame, globals) =>
  new FramedApp(t, frame, { origin: AGENT, location: { protocol: 'https:' }, ...globals });

/**
 * What is said of an app that does not answer within 5 s: by connect, and by the console after the
 * first second.
 * @param {() => unknown} [meanwhile] what it does instead
 */
async function unanswered(t, app, meanwhile = () => {}) {
  const clock = useClock(t);
  const warn = t.mock.method(console, 'warn', () => {});
  let error;
  const connecting = app.connect({ timeout: 5000 }).catch((thrown) => (error = thrown));
  await turns();
  await meanwhile();
  await turns();
  clock.advance(1000);
  await turns();
  clock.advance(50); // in which a browser hands over its reports
  await turns();
  clock.advance(3950);
  while (!error) {
    await turn();
    clock.advance(50);
  }
  await connecting;
  const said = warn.mock.calls.map(({ arguments: [text] }) => text);
  assert.ok(said.length <= 1);
  const [, reason] = /^The app did not answer with a session within 5000 ms: (.*)$/.exec(
    error.message,
  );
  const [, early] = /^abp-bridge: the app has not answered yet: (.*)$/.exec(said[0]) ?? [];
  return { error, reason, early };
}

describe('of an app that did not answer it says', () => {
  /**
   * What the app says instead, what connect says then, and whether the console has said so before.
   */
  const SAID = {
    'that nobody is there': [
      [],
      /^nothing at the other end calls expose \(docs\/errors\.md#no-answer\)$/,
      false,
    ],
    'the last refusal, and what to do where another client has the session': [
      [TAKEN],
      /^it refused, with ALREADY_INITIALIZED: Ann is here\. close\(\) the client that has the session \(docs\/errors\.md#already-connected\)$/,
      true,
    ],
    'the last of two refusals': [
      [TAKEN, refusal({ code: 'ALREADY_INITIALIZED', message: 'Bob is here', retryable: true })],
      /^it refused, with ALREADY_INITIALIZED: Bob is here/,
      true,
    ],
    'that it speaks JSON-RPC': [[{ jsonrpc: '2.0' }], /^it speaks JSON-RPC/, true],
    'that its messages cannot be read': [
      [7, 'text'],
      /^its messages could not be read: they are malformed, or longer than/,
      true,
    ],
  };
  for (const [what, [messages, said, early]] of Object.entries(SAID))
    test(what, async (t) => {
      const app = portApp();
      const told = await unanswered(t, app, async () => {
        const { id } = await app.next();
        for (const message of messages) app.say(message.payload ? { ...message, id } : message);
      });
      assert.match(told.reason, said);
      assert.equal(told.early, early ? told.reason : undefined);
      const { error } = told;
      assert.ok(error instanceof AbpError);
      assert.deepEqual([error.code, error.retryable], ['TIMEOUT', true]);
      const last = messages.at(-1);
      assert.equal(error.cause?.message, last?.payload?.error.message);
      const unread = messages.filter((message) => !message.payload).length;
      assert.deepEqual(error.details, unread ? { unread } : undefined);
    });
});

describe('of an app in an iframe it says', () => {
  const PAGE =
    /^its page must load from https:\/\/app\.example, and call expose\(app, \{ origins: \["https:\/\/agent\.example"\] \}\)/;
  const HTTP = { src: 'http://app.example/a', origin: 'http://app.example', shows: FOREIGN };
  const OTHER_SRCS = [
    'blob:https://y.example/a',
    'chrome+https://y.example/a',
    'httpsx://y.example/a',
    'http://',
  ];
  /**
   * The frame, what connect says at the end, whether the console has said so before, and what else
   * the page has.
   */
  const SAID = {
    'that the server answered with an error': [
      { shows: visible(`${APP}/a`, 400, APP) },
      /^the server answered https:\/\/app\.example\/a with status 400 \(docs\/errors\.md#frame-not-found\)$/,
      true,
    ],
    'nothing of a server that answered well': [{ shows: visible(`${APP}/a`, 399, APP) }, PAGE],
    'nothing of a status that is not told': [{ shows: visible(`${APP}/a`, undefined, APP) }, PAGE],
    'nothing of a status where there is no performance': [
      { shows: { origin: APP, location: { href: `${APP}/a` } } },
      PAGE,
    ],
    'that it is empty, when time is up: until then its page may load': [
      { shows: EMPTY },
      /^the iframe is empty: its page has not begun to load \(docs\/errors\.md#frame-not-found\)$/,
    ],
    'that it was given no page': [{ shows: EMPTY, src: '' }, /^the iframe is empty/, true],
    'that it is empty and will not be right': [
      { shows: EMPTY, src: 'https://y.example/a' },
      /^the iframe is empty/,
      true,
    ],
    'what the frame shows instead': [
      { shows: visible(`${AGENT}/other`) },
      /^the iframe shows https:\/\/agent\.example\/other, which is not at https:\/\/app\.example \(docs\/errors\.md#wrong-origin\)$/,
      true,
    ],
    'nothing of a document that has an origin and no address': [{ shows: { origin: AGENT } }, PAGE],
    'that its src is of another origin': [
      { shows: FOREIGN, src: 'https://y.example/a' },
      /^the iframe's src is at https:\/\/y\.example, but connect was given origin: https:\/\/app\.example \(docs\/errors\.md#wrong-origin\)$/,
      true,
    ],
    ...Object.fromEntries(
      OTHER_SRCS.map((src) => [`nothing of the src ${src}`, [{ shows: FOREIGN, src }, PAGE]]),
    ),
    'that a browser may block it, in a page that came safely': [
      HTTP,
      /^browsers may block an http: frame in an https: page \(docs\/errors\.md#frame-not-found\)$/,
      true,
    ],
    'nothing of that in an http: page': [
      HTTP,
      /^its page must load/,
      false,
      { location: { protocol: 'http:' } },
    ],
    'that it has an origin after all, without a sandbox': [
      { shows: FOREIGN, origin: 'null' },
      /^the iframe has no sandbox: its origin is https:\/\/app\.example, not "null" \(docs\/errors\.md#wrong-origin\)$/,
      true,
    ],
    'what its page must do, in a sandbox': [
      { shows: FOREIGN, origin: 'null', sandbox: 'allow-scripts' },
      /^its page must load, and call expose\(app, \{ origins: \["https:\/\/agent\.example"\] \}\)\. Its console says more \(docs\/errors\.md#no-answer\)$/,
    ],
    'that a page without an origin cannot be listed': [
      { shows: FOREIGN },
      /^this page has no origin/,
      true,
      { origin: 'null' },
    ],
  };
  for (const [what, [frame, said, early, globals]] of Object.entries(SAID))
    test(what, async (t) => {
      const told = await unanswered(t, frameApp(t, frame, globals));
      assert.match(told.reason, said);
      assert.equal(told.early, early ? told.reason : undefined);
    });

  test('from where it speaks, before all that can be seen', async (t) => {
    const app = frameApp(t, { shows: EMPTY });
    const told = await unanswered(t, app, () => app.say('hello', { origin: 'https://x.example' }));
    assert.equal(
      told.reason,
      `the iframe's messages come from https://x.example, not from ${APP} (docs/errors.md#wrong-origin)`,
    );
  });

  test('nothing of a frame that has gone', async (t) => {
    const app = frameApp(t, { shows: FOREIGN });
    const told = await unanswered(t, app, () => (app.iframe.contentWindow = null));
    assert.match(told.reason, PAGE);
    assert.equal(told.early, undefined);
  });
});

describe('a frame that the browser does not load', () => {
  /** A page whose browser reports what policies have blocked. */
  function reporting(t, reports, frame) {
    const observers = [];
    class ReportingObserver {
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
    }
    return { app: frameApp(t, { shows: FOREIGN, ...frame }, { ReportingObserver }), observers };
  }
  const blocked = (body, type = 'csp-violation') => ({
    type,
    body: { disposition: 'enforce', blockedURL: `${APP}/editor`, ...body },
  });
  const CSP = blocked({ effectiveDirective: 'frame-src' });
  const COEP = blocked({ destination: 'iframe' }, 'coep');
  const OTHERS = [
    { type: 'intervention' },
    blocked({ effectiveDirective: 'frame-src', disposition: 'report' }),
    blocked({ effectiveDirective: 'img-src', destination: 'image' }),
    blocked({ effectiveDirective: 'frame-src', blockedURL: 'https://y.example/' }),
    blocked({ effectiveDirective: 'frame-src', blockedURL: 'inline' }),
  ];
  const POLICY =
    /^this page's Content Security Policy blocks the frame: add https:\/\/app\.example to frame-src \(docs\/errors\.md#frame-not-found\)$/;
  for (const [what, reports, said, frame] of [
    ['because of the page’s own policy, though it seems to load', [CSP], POLICY, { shows: EMPTY }],
    [
      'because the page is isolated',
      [{ type: 'deprecation' }, COEP, CSP],
      /^this page's Cross-Origin-Embedder-Policy blocks the frame/,
    ],
    ['because of nothing else that policies say', OTHERS, undefined],
  ])
    test(what, async (t) => {
      const { app, observers } = reporting(t, reports, frame);
      const { reason, early } = await unanswered(t, app);
      assert.match(reason, said ?? /^its page must load from/);
      assert.equal(early, said && reason);
      for (const { options, isOn } of observers)
        assert.deepEqual([options, isOn], [{ buffered: true }, false]);
    });

  test('is told after what the app has said', async (t) => {
    const { app } = reporting(t, [CSP]);
    const { reason } = await unanswered(t, app, async () => {
      const { id } = await app.next();
      app.say({ ...TAKEN, id });
    });
    assert.match(reason, /^it refused/);
  });

  test('is not asked about where the frame has no address', async (t) => {
    const { app, observers } = reporting(t, [CSP], { shows: EMPTY, src: '' });
    assert.match((await unanswered(t, app)).reason, /^the iframe is empty/);
    assert.deepEqual(observers, []);
  });
});

test('the console says nothing once the answer has come', async (t) => {
  const clock = useClock(t);
  const warn = t.mock.method(console, 'warn', () => {});
  const app = portApp();
  const connecting = app.connect();
  const { id } = await app.next();
  app.say({ ...TAKEN, id });
  app.say({
    type: 'initialize-result',
    id,
    payload: { sessionId: 's', features: {}, capabilities: [] },
  });
  const client = await connecting;
  clock.advance(1050);
  await turns();
  assert.equal(warn.mock.callCount(), 0);
  client.close();
});
