// A page whose iframe is anywhere: in shadow trees, in other frames and windows. Does nothing until
// a test asks.
import { connect } from '/parts/main/index.js';
import { createPeer, windowChannel } from '/packages/rpc/src/index.js';

const make = (name) => document.createElement(name);
/**
 * An element with a shadow tree, in `parent`.
 * @returns {{ host: HTMLElement, root: ShadowRoot }}
 */
const shadowIn = (parent, mode = 'open') => {
  const host = make('div');
  parent.append(host);
  return { host, root: host.attachShadow({ mode }) };
};
/** An empty frame of this origin, whose document is this page's to fill. */
const frameIn = (parent) => {
  const outer = make('iframe');
  parent.append(outer);
  return { outer, body: outer.contentDocument.body };
};
/** Ms that a busy machine may need to load an app. A test that is about less says so. */
const LONG = 300_000;
/** What a test holds on to. */
const kept = (window.kept = {});

/** Where an iframe may be: each makes the place, and gives the ways in which it can end. */
const PLACES = {
  'an open shadow tree'(iframe) {
    const { host, root } = shadowIn(document.body);
    root.append(iframe);
    return {
      'is removed': () => iframe.remove(),
      'is written over': () => (root.innerHTML = ''),
      'goes with its host': () => host.remove(),
      'is put elsewhere in its tree': () => root.append(make('p'), iframe),
      'is taken out and put back at once': () => root.replaceChildren(iframe),
      'goes with its host into a fragment': () => new DocumentFragment().append(host),
    };
  },
  'a closed shadow tree'(iframe) {
    const { host, root } = shadowIn(document.body, 'closed');
    const inner = make('div');
    root.append(inner);
    inner.append(iframe);
    return {
      'is removed': () => iframe.remove(),
      'is written over': () => (root.innerHTML = ''),
      'goes with its host': () => host.remove(),
    };
  },
  'a shadow tree within others'(iframe) {
    const outer = shadowIn(document.body, 'closed');
    const middle = shadowIn(outer.root);
    const inner = shadowIn(middle.root, 'closed');
    inner.root.append(iframe);
    return {
      'is removed': () => iframe.remove(),
      'goes with the inner host': () => inner.host.remove(),
      'goes with the middle host': () => (outer.root.innerHTML = ''),
      'goes with the outer host': () => outer.host.remove(),
    };
  },
  'a slot'(iframe) {
    const outer = shadowIn(document.body);
    const inner = shadowIn(outer.root, 'closed');
    inner.root.append(make('slot'));
    inner.host.append(iframe);
    return {
      'is removed': () => iframe.remove(),
      'goes with the element that has the slot': () => inner.host.remove(),
      'goes with the tree around that': () => outer.host.remove(),
    };
  },
  'another frame of this origin'(iframe) {
    const { outer, body } = frameIn(shadowIn(document.body).root);
    const { root } = shadowIn(body);
    root.append(iframe);
    return {
      'is removed': () => iframe.remove(),
      'goes with that frame': () => outer.remove(),
      'goes with the document of that frame': () => (outer.src = '/tests/browser/pages/blank.html'),
      'is adopted by this document': () => document.body.append(document.adoptNode(iframe)),
      'is written over with its document': () => {
        outer.contentDocument.open();
        outer.contentDocument.write('anew');
        outer.contentDocument.close();
      },
    };
  },
  'a frame within a frame of this origin'(iframe) {
    const { outer, body } = frameIn(document.body);
    frameIn(body).body.append(iframe);
    return { 'goes with the outer one': () => outer.remove() };
  },
  'another window'(iframe) {
    const popup = window.open('about:blank', '', 'popup');
    popup.document.body.append(iframe);
    return {
      'is removed': () => iframe.remove(),
      'goes with that window': () => popup.close(),
    };
  },
  'the page'(iframe) {
    document.body.append(iframe);
    return {
      'is removed': () => iframe.remove(),
      'moves into a shadow tree': () => shadowIn(document.body).root.append(iframe),
      'is adopted by a document without a window': () =>
        new DOMParser().parseFromString('', 'text/html').body.append(iframe),
    };
  },
};
const agent = { name: 'test', version: '1' };
/** The ways to an app, by which each test makes a call that only the end of the frame ends. */
const CLIENTS = {
  async abp(iframe, options) {
    kept.client = await connect(iframe, { agent, timeout: LONG, ...options });
    return async () => {
      const { error, metadata } = await kept.client.call('hang');
      return [error.code, metadata.outcome];
    };
  },
  async rpc(iframe, { origin }) {
    kept.peer = createPeer(windowChannel(iframe, { origin, loaded: true }), { dialect: 'mcp' });
    return () =>
      kept.peer.request('hang').then(
        () => 'answered',
        ({ code, data }) => [code, data?.outcome],
      );
  },
};

/** Puts an app somewhere, and begins a call that hangs. */
window.put = async ({ src, place, way, ...options }) => {
  kept.iframe?.remove();
  const iframe = (kept.iframe = make('iframe'));
  iframe.src = src;
  const loaded = new Promise((resolve) => (iframe.onload = resolve));
  kept.ends = PLACES[place](iframe);
  await loaded;
  kept.call = await CLIENTS[way](iframe, options);
  kept.pending = kept.call();
};
window.end = async (how) => {
  kept.ends[how]();
  return kept.pending;
};
/**
 * Shows an app and connects to it, by itself again and again. `kept.told` is what the client has
 * said of it since.
 */
window.keep = async ({ src, origin, attributes = {}, reconnect = true, ...options }) => {
  kept.iframe?.remove();
  const iframe = (kept.iframe = make('iframe'));
  for (const [name, value] of Object.entries(attributes)) iframe.setAttribute(name, value);
  iframe.src = src;
  document.body.append(iframe);
  const told = (kept.told = []);
  kept.reloads = [];
  if (reconnect.reload === 'the test') {
    reconnect.reload = async (frame) => {
      kept.reloads.push(frame === iframe);
      await undefined;
      frame.src = src;
      if (kept.reloads.length === 1) throw new Error('not yet');
    };
  }
  const failing = {
    throws() {
      throw new Error('no way');
    },
    rejects: () => Promise.reject(new Error('no way')),
    hangs: () => new Promise(() => {}),
  };
  if (failing[reconnect.reload]) reconnect.reload = failing[reconnect.reload];
  const begin = () =>
    connect(iframe, {
      agent,
      origin,
      reconnect,
      timeout: LONG,
      ...options,
      onDisconnect: ({ code }) => told.push(code),
      onReconnect: (error) => told.push(error ? `${error.code}: ${error.message}` : 'again'),
    });
  // Tests of what comes then set short limits, in which a busy machine may not have loaded the app.
  for (kept.client = undefined; !kept.client;)
    kept.client = await begin().catch((error) => {
      if (error.code !== 'TIMEOUT') throw error;
    });
};
/** Takes the frame out of the page, for so many ms. */
window.takeOut = (ms, parent = document.body) => {
  kept.iframe.remove();
  if (ms !== undefined) setTimeout(() => parent.append(kept.iframe), ms);
};
Object.assign(window, { connect, windowChannel, shadowIn, frameIn, isReady: true });
