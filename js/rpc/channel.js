/**
 * JSON-RPC as objects, between a page and its iframe and over MessagePorts.
 *
 * Between windows, exact origin, source and `isTrusted` decide who speaks. What is said is plain JSON-RPC until
 * both sides have found each other to be ours, by words of our own that others pass over, as they are no
 * JSON-RPC:
 *
 *   app   here {document}          a document is there, and this is its mark
 *   host  hello {to}               may be answered with a port
 *   app   offer {to, document}     with the port: this document made it, so nobody else holds the other end
 *   host  taken {to}               the host's last word on the window: it speaks by the port from now on
 *   app   moved {document}         and so does the app
 *
 * A side reads the port once the other has said its last word on the window, so nothing overtakes.
 */
import * as Entry from '../entries.js';
import { AbpError, callOut, reasonText } from '../errors.js';
import { FrameWriter, LONGEST } from '../frames.js';
import { own } from '../messages.js';
import { exactOrigin } from '../origins.js';
import { portTransport } from '../transports/port.js';
import { OPAQUE, iframeTransport, listen, peerTransport } from '../transports/window.js';
import { watchFrame } from '../watch.js';

/** @typedef {import('../endpoint.js').Transport} Transport */

/** The key of our own words. */
const WORD = 'abp-bridge';
/** What is said on a port when its document goes. */
const BYE = 'bye';
/** ms after which an app is spoken to that does not speak, and may have loaded long ago. */
const PATIENCE = 10000;
/** Messages that wait to be read: of a sandboxed app for its port, of any for somebody who listens. */
const MOST_EARLY = 1024;
const MUST_OFFER =
  'a sandboxed app must use hostChannel: nothing else tells its document from another';
/** JSON-RPC's internal error: a message of ours could not be sent. */
const INTERNAL_ERROR = -32603;

/** Ours hold no secret. @param {unknown} message */
const isWord = (message) => typeof own(message, WORD) === 'string';

const mark = () => crypto.getRandomValues(new Uint32Array(4)).join('-');

/**
 * @typedef {object} NodeWorker What we use of `worker_threads.Worker`, and of `parentPort` in it.
 * @property {(message: any, transfer?: any) => void} postMessage
 * @property {(event: any, listener: (...args: any[]) => void) => unknown} on
 * @property {(event: any, listener: (...args: any[]) => void) => unknown} off
 */

/**
 * A port to another of ours, or what has a port's form: the messages of a turn go together, and either side hears
 * when the other's document goes. (A port to anybody else is `portTransport`'s.)
 * @param {MessagePort | Worker | NodeWorker | typeof globalThis} port in a worker, its own scope or Node's `parentPort`
 * @param {() => void} [closed] what closing does besides: a port of our own is closed with it
 * @returns {Transport}
 */
export const portChannel = (port, closed) => new PortChannel(port, closed);

class PortChannel {
  /** @type {Transport['onClose']} */
  onClose;
  /** @type {Transport['onMessage']} */
  #onMessage = () => {};
  /** Once somebody listens. @type {Transport | undefined} */
  #transport;
  #closed = false;
  #port;
  #close;
  #writer;

  /**
   * @param {any} port
   * @param {() => void} [closed]
   */
  constructor(port, closed = () => port.close?.()) {
    this.#port = port;
    this.#close = closed;
    this.#writer = new FrameWriter(
      (frame, transfer) => port.postMessage(frame, transfer ?? []),
      ([, , , message], transfer, error) => this.#undeliverable(message, transfer, error),
    );
    globalThis.window?.addEventListener('pagehide', this.#leave);
  }

  get onMessage() {
    return this.#onMessage;
  }

  set onMessage(listener) {
    this.#onMessage = listener;
    if (this.#transport) return;
    const worker = this.#port.terminate && this.#port;
    this.#transport = portTransport(this.#port, this.#close, worker);
    this.#transport.onMessage = (data) => this.#receive(data);
    this.#transport.onClose = () => this.#lost();
  }

  /**
   * @param {any} message
   * @param {Transferable[]} [transfer]
   */
  post(message, transfer) {
    if (!this.#closed) this.#writer.add(Entry.MESSAGE, 0, undefined, message, transfer);
  }

  /** Tells the other side. */
  close() {
    if (this.#closed) return;
    this.#writer.flush();
    this.#port.postMessage(BYE);
    this.#end();
  }

  #end() {
    this.#closed = true;
    globalThis.window?.removeEventListener('pagehide', this.#leave);
    if (this.#transport) this.#transport.close();
    else this.#close();
  }

  #leave = () => {
    this.close();
    callOut(this.onClose);
  };

  #lost() {
    if (this.#closed) return;
    this.#end();
    callOut(this.onClose);
  }

  /** @param {unknown} data */
  #receive(data) {
    if (data === BYE) return this.#lost();
    if (!Array.isArray(data) || data.length > LONGEST * 4) return;
    for (let i = 0; i < data.length && !this.#closed; i += 4) {
      if (data[i] === Entry.MESSAGE) callOut(this.#onMessage, data[i + 3], []);
    }
  }

  /**
   * @param {any} message
   * @param {Transferable[] | undefined} transfer
   * @param {unknown} cause
   */
  #undeliverable(message, transfer, cause) {
    if (transfer?.length) this.post(message);
    else unsendable(message, cause, this);
  }
}

/**
 * What could not be sent after `post` had taken it is answered in the other side's place, or replaced by an error.
 * @param {any} message
 * @param {unknown} cause
 * @param {Transport} channel
 */
function unsendable(message, cause, channel) {
  const id = own(message, 'id');
  const why = `The message cannot be sent: ${reasonText(cause)}`;
  const answer = { jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message: why } };
  if (typeof id !== 'string' && typeof id !== 'number') console.warn('abp-bridge:', why);
  else if (own(message, 'method') === undefined) channel.post(answer);
  else queueMicrotask(() => callOut(channel.onMessage, answer, []));
}

/**
 * @typedef {object} HostOptions
 * @property {string} origin the app's exact origin; `'null'` is a sandboxed iframe, which must run this library too:
 *   it is only spoken to by the port that it offers
 * @property {boolean} [loaded] whether the app listens already, so that it can be spoken to at once (false)
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to window messages, readable in the browser's tools, also
 *   where both sides are ours (`'frames'`)
 */

/**
 * @typedef {object} AppOptions
 * @property {readonly string[]} origins the exact origins that the host may have; nothing is said to any other
 * @property {Window} [host] its window (`parent`)
 * @property {'frames' | 'none'} [upgrade] as above
 */

/** What both sides of a window have in common. */
class WindowChannel {
  /** @type {Transport['onMessage'] | undefined} */
  #onMessage;
  /** What came before anybody listened. @type {unknown[]} */
  #unheard = [];
  /** @type {Transport['onClose']} */
  onClose;
  /** Where what is posted goes to, once there is a port. @type {Transport | undefined} */
  #port;
  /** Whether the other side has said its last word on the window. */
  #deaf = false;
  closed = false;

  /** @param {Transport} way */
  constructor(way) {
    this.way = way;
    way.onMessage = (data, ports) => this.#heard(data, ports);
  }

  get onMessage() {
    return this.#onMessage ?? (() => {});
  }

  set onMessage(listener) {
    this.#onMessage = listener;
    queueMicrotask(() => {
      for (const message of this.#unheard.splice(0)) this.deliver(message);
    });
  }

  /** @param {unknown} message */
  deliver(message) {
    if (this.closed) return;
    if (this.#onMessage) callOut(this.#onMessage, message, []);
    else if (this.#unheard.length < MOST_EARLY) this.#unheard.push(message);
  }

  /**
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   */
  post(message, transfer) {
    if (!this.closed) (this.#port ?? this.way).post(message, transfer);
  }

  /** Tells the other side where there is a port. */
  close() {
    if (this.closed) return;
    this.closed = true;
    this.way.close();
    this.#port?.close();
  }

  lost() {
    if (this.closed) return;
    this.close();
    callOut(this.onClose);
  }

  /**
   * @param {string} word
   * @param {object} [more]
   * @param {Transferable[]} [transfer]
   */
  say(word, more, transfer) {
    this.way.post({ [WORD]: word, ...more }, transfer);
  }

  /**
   * From now on, what is posted goes by the port.
   * @param {MessagePort} port
   */
  speakBy(port) {
    this.#port = portChannel(port);
  }

  /** From now on, what is read comes by the port. */
  listenToPort() {
    const port = /** @type {Transport} */ (this.#port);
    this.#deaf = true;
    port.onMessage = (message) => this.deliver(message);
    port.onClose = () => this.lost();
  }

  get hasPort() {
    return this.#port !== undefined;
  }

  /**
   * @param {unknown} data
   * @param {readonly MessagePort[]} ports
   */
  #heard(data, ports) {
    const kept = isWord(data) ? this.onWord(own(data, WORD), data, ports) : undefined;
    for (const port of ports) if (port !== kept) port.close();
    if (!this.#deaf && isJsonRpc(data) && this.believes(data)) this.deliver(data);
  }

  /**
   * @param {string} _word
   * @param {unknown} _data
   * @param {readonly MessagePort[]} _ports
   * @returns {MessagePort | void} the one that is kept
   */
  onWord(_word, _data, _ports) {}

  /**
   * Whether what came by the window is taken at once.
   * @param {unknown} _data
   */
  believes(_data) {
    return true;
  }
}

/**
 * Whether it is a message, or a batch of them: other traffic of a window is none of ours.
 * @param {unknown} data
 */
const isJsonRpc = (data) => own(Array.isArray(data) ? data[0] : data, 'jsonrpc') === '2.0';

/**
 * From a host page to the app in its iframe, or in a window that it opened.
 *
 * What is posted before the app has spoken or loaded waits, since a document that loads hears nothing. An iframe
 * that is reloaded, navigated or removed closes the channel: a new document needs a new one.
 * @param {HTMLIFrameElement | Window} target
 * @param {HostOptions} options
 * @returns {Transport}
 */
export const windowChannel = (target, options) => new HostSide(target, options);

class HostSide extends WindowChannel {
  /** What names this side to the app. */
  #name = mark();
  /** Marks the app's document, if it is one of ours. @type {unknown} */
  #document;
  /** What waits until the app can hear it. @type {[unknown, Transferable[] | undefined][] | undefined} */
  #waiting = [];
  /** What a sandboxed app said by the window. @type {unknown[]} */
  #early = [];
  #opaque;
  #upgrade;
  #timer;
  #unwatch = () => {};

  /**
   * @param {HTMLIFrameElement | Window} target
   * @param {HostOptions} options
   */
  constructor(target, { origin, upgrade = 'frames', loaded = false }) {
    const opaque = origin === OPAQUE;
    const iframe = /** @type {HTMLIFrameElement} */ (
      'postMessage' in target ? { contentWindow: target } : target
    );
    if (!iframe.contentWindow) {
      throw new AbpError('INVALID_PARAMS', 'The iframe is in no document: append it first');
    }
    super(iframeTransport(iframe, opaque ? origin : exactOrigin(origin), isWord));
    this.#opaque = opaque;
    this.#upgrade = upgrade;
    // A frame that has only its first, empty document will load another, and say so.
    const empty = iframe.contentDocument?.URL === 'about:blank';
    if (!empty) this.#timer = setTimeout(this.#release, PATIENCE);
    if (iframe === target) {
      iframe.addEventListener('load', this.#release, { once: true });
      const unwatch = watchFrame(iframe, this, () => !this.#waiting);
      this.#unwatch = () => {
        iframe.removeEventListener('load', this.#release);
        unwatch();
      };
    }
    this.#greet();
    if (loaded) this.#release();
  }

  /**
   * @override
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   */
  post(message, transfer) {
    if (this.#waiting) this.#waiting.push([message, transfer]);
    else super.post(message, transfer);
  }

  /** @override */
  close() {
    clearTimeout(this.#timer);
    this.#unwatch();
    super.close();
  }

  /** This page is going away. */
  leave() {
    this.lost();
  }

  #greet() {
    if (this.#upgrade !== 'none') this.say('hello', { to: this.#name });
  }

  /**
   * A sandboxed frame that goes elsewhere keeps its window and its origin, so what comes by the window is only
   * its document's if that, which nobody else can name, says so afterwards.
   * @override
   * @param {unknown} data
   */
  believes(data) {
    this.#release();
    if (!this.#opaque) return true;
    if (this.#document === undefined) console.warn('abp-bridge:', MUST_OFFER);
    else if (this.#early.length < MOST_EARLY) this.#early.push(data);
    return false;
  }

  /**
   * @override
   * @param {string} word
   * @param {unknown} data
   * @param {readonly MessagePort[]} ports
   */
  onWord(word, data, ports) {
    const document = own(data, 'document');
    switch (word) {
      case 'here':
        if (this.#document !== undefined && this.#document !== document) return this.lost();
        this.#document = document;
        this.#release();
        return this.#greet();
      case 'offer':
        if (own(data, 'to') !== this.#name || ports.length !== 1 || this.hasPort) return;
        this.#document = document;
        this.say('taken', { to: this.#name });
        this.speakBy(ports[0]);
        this.#release();
        return ports[0];
      case 'moved':
        if (!this.hasPort || document !== this.#document) return;
        for (const message of this.#early.splice(0)) this.deliver(message);
        this.listenToPort();
    }
  }

  #release = () => {
    if (!this.#waiting || (this.#opaque && !this.hasPort)) return;
    clearTimeout(this.#timer);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    for (const [message, transfer] of waiting) {
      try {
        super.post(message, transfer);
      } catch (error) {
        unsendable(message, error, this);
      }
    }
  };
}

/**
 * From an app to the page that embeds it, or that opened it.
 * @param {AppOptions} options
 * @returns {Transport}
 */
export const hostChannel = (options) => new AppSide(options);

class AppSide extends WindowChannel {
  #document = mark();
  /** Whose port was offered. @type {unknown} */
  #host;
  /** Ours, until the host has taken the other end. @type {MessagePort | undefined} */
  #offered;
  #upgrade;

  /** @param {AppOptions} options */
  constructor({ origins, host = parent, upgrade = 'frames' }) {
    super(hostTransport(host, new Set(origins.map(exactOrigin))));
    this.#upgrade = upgrade;
    this.say('here', { document: this.#document });
  }

  /** @override */
  close() {
    this.#offered?.close();
    super.close();
  }

  /**
   * @override
   * @param {string} word
   * @param {unknown} data
   */
  onWord(word, data) {
    const to = own(data, 'to');
    switch (word) {
      case 'hello': {
        if (this.#upgrade === 'none' || this.hasPort || to === this.#host) return;
        this.#host = to;
        this.#offered?.close();
        const { port1, port2 } = new MessageChannel();
        this.#offered = port1;
        return this.say('offer', { to, document: this.#document }, [port2]);
      }
      case 'taken':
        if (!this.#offered || to !== this.#host) return;
        this.say('moved', { document: this.#document });
        this.speakBy(this.#offered);
        this.#offered = undefined;
        this.listenToPort();
    }
  }
}

/**
 * @param {Window} host
 * @param {ReadonlySet<string>} origins
 * @returns {Transport}
 */
function hostTransport(host, origins) {
  // Until the host has spoken, what is said goes to each origin that it may have: the browser lets it pass to
  // the one that it has.
  let targets = [...origins];
  const stop = listen(origins, (source, origin, data, ports) => {
    if (source !== host || !targets.includes(origin)) return;
    targets = [origin];
    transport.onMessage(data, ports);
  });
  /** @type {Transport} */
  const transport = {
    post(message, transfer) {
      const moved = targets.length === 1 ? transfer : undefined;
      for (const origin of targets) peerTransport(host, origin).post(message, moved);
    },
    onMessage() {},
    close: stop,
  };
  return transport;
}
