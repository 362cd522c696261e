/**
 * Connects a page and the app in its iframe, for a protocol without a handshake of its own.
 *
 * A message counts only with the exact origin, the right source and `isTrusted`. Until each side
 * knows that the other runs this library, too, they send only the protocol's messages, and these
 * control messages, which other libraries ignore:
 *
 *   app   here {document}          a document has loaded, and this is its mark
 *   host  hello {to}               may be answered with a port
 *   app   offer {to, document} with a port that this document made, so that its other end is
 *         with this document alone
 *   host  taken {to}               the host's last message on the window: from now on it uses the
 *         port
 *   app   moved {document}         and so does the app
 *
 * A side reads from the port once the other has sent its last message on the window, so that no
 * message overtakes another.
 */
import {
  OPAQUE,
  AbpError,
  Receiver,
  exactOrigin,
  getOwn,
  iframeTransport,
  requireOptions,
  requireWindow,
  safely,
  secret,
  warn,
  watchIframe,
  watchWindow,
} from 'abp-bridge/driver';
import { answerUnsent, isMessage } from './message.js';
import { portChannel } from './port-channel.js';

/** @import { Transport } from 'abp-bridge/driver' */

/** The key of our control messages. */
const WORD = 'abp-bridge';
/** ms after which the host sends first: the app may have loaded long ago. */
const PATIENCE = 10000;
/** Messages from a sandboxed app that are kept until it offers its port. */
const MAX_EARLY_MESSAGES = 1024;

/**
 * @typedef {object} HostOptions Options of a page that embeds another.
 * @property {string} origin the app's exact origin; `'null'` is a sandboxed iframe, which must run
 *   this library too: messages go to it only by the port that it offers
 * @property {boolean} [loaded] whether the app listens already, so that the host may send at once
 *   (false)
 * @property {'frames' | 'none'} [upgrade] `'none'` keeps to window messages, readable in the
 *   browser's tools, also if both sides are of this library (`'frames'`)
 */

/**
 * @typedef {object} AppOptions Options of an embedded page.
 * @property {readonly string[]} [origins] the exact allowed origins of the host; nothing is sent to
 *   others. The default is that of the page that embeds this one
 * @property {Window} [host] its window (`parent`)
 * @property {'frames' | 'none'} [upgrade] as above
 */

/** @type {import('abp-bridge/driver').Kinds<HostOptions>} */
const HOST_OPTIONS = { loaded: 'a boolean', origin: 'a string', upgrade: '"frames" or "none"' };
/** @type {import('abp-bridge/driver').Kinds<AppOptions>} */
const APP_OPTIONS = { host: 'an object', origins: 'an object', upgrade: '"frames" or "none"' };

/**
 * From a host page to the app in its iframe, or in a window that it opened.
 *
 * Messages wait until the app has sent something or has loaded, since a loading document receives
 * nothing. An iframe that is reloaded, navigated or removed closes the channel: a new document
 * needs a new one.
 * @param {HTMLIFrameElement | Window | null} target
 * @param {HostOptions} options
 * @returns {Transport & { readonly isReplaced: boolean }} `isReplaced`: it ended because another
 *   document was loaded
 */
export const windowChannel = (target, options) => new HostChannel(target, options);

/**
 * Connects an app to the page that embeds it, or that opened it.
 * @param {AppOptions & { origins: readonly string[] }} options
 * @returns {Transport}
 */
export const hostChannel = (options) => new AppChannel(options);

/** The common part of both sides. */
class WindowChannel extends Receiver {
  /** The port for messages, once there is one. @type {Transport | undefined} */
  port;
  /** True if the other side has sent its last message on the window. */
  #deaf = false;
  /** Stops watching the other side's window. */
  unwatch = () => {};

  /** @param {Transport} way for messages until there is a port */
  constructor(way) {
    super();
    this.way = way;
    way.onMessage = (data, ports) => this.#receive(data, ports);
  }

  /**
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   */
  post(message, transfer) {
    if (!this.stopped) (this.port ?? this.way).post(message, transfer);
  }

  /**
   * Notifies the other side, if there is a port.
   * @override
   */
  end() {
    this.unwatch();
    this.way.close();
    this.port?.close();
  }

  /** @param {unknown} [cause] */
  lost(cause) {
    this.lose(cause);
    this.stop();
  }

  /**
   * @param {string} word
   * @param {object} [more]
   * @param {Transferable[]} [transfer]
   */
  say(word, more, transfer) {
    this.way.post({ [WORD]: word, ...more }, transfer, 'greeting');
  }

  /**
   * Reads messages from the port from now on.
   * @param {Transport} port
   */
  listenTo(port) {
    this.#deaf = true;
    port.onClose = (cause) => this.lost(cause);
    port.onUnreadable = (error) => this.receiveUnreadable(error);
    port.onMessage = (message) => this.receive(message);
  }

  /**
   * @param {unknown} data
   * @param {readonly MessagePort[]} ports
   */
  #receive(data, ports) {
    const word = getOwn(data, WORD);
    const isOurs = typeof word === 'string';
    const isHeard = isMessage(data);
    // The control messages hold no secret.
    const kept = isOurs ? this.onWord(word, data, ports) : undefined;
    // Other messages are left to other listeners, with their ports.
    if (isOurs || isHeard) for (const port of ports) if (port !== kept) port.close();
    if (!this.#deaf && isHeard && this.believes(data)) this.receive(data);
  }

  /**
   * Handles a control message. Returns the port that is kept, if any.
   * @param {string} _word
   * @param {unknown} _data
   * @param {readonly MessagePort[]} _ports
   * @returns {MessagePort | void}
   */
  onWord(_word, _data, _ports) {}

  /**
   * True if a message from the window is delivered at once.
   * @param {unknown} _data
   */
  believes(_data) {
    return true;
  }
}

class HostChannel extends WindowChannel {
  /** The name by which the app addresses this side. */
  #name = secret();
  /** The mark of the app's document, if it runs this library. @type {unknown} */
  #document;
  /**
   * Messages that wait until the app listens.
   * @type {[unknown, Transferable[] | undefined][] | undefined}
   */
  #waiting = [];
  /** Messages of a sandboxed app by the window. @type {unknown[]} */
  #early = [];
  #opaque;
  #upgrade;
  #iframe;
  /**
   * The document that messages are sent to, if it is of this page's own origin.
   * @type {Document | null}
   */
  #shown = null;
  #timer;
  /** True if the app sent something before its document was complete. */
  #spokeEarly = false;
  /** True if it ended because the frame, or this page, shows another document. */
  isReplaced = false;

  /**
   * @param {HTMLIFrameElement | Window | null} target
   * @param {HostOptions} options
   */
  constructor(target, options) {
    requireOptions('windowChannel', options, HOST_OPTIONS);
    const { origin, upgrade = 'frames', loaded = false } = options;
    const isWindow = !target || 'postMessage' in target;
    if (isWindow) requireWindow(target);
    /** @type {any} */
    const iframe = isWindow ? { contentWindow: target } : target;
    if (!iframe.contentWindow)
      throw new AbpError('INVALID_PARAMS', 'The iframe is not in a document: append it first');
    super(iframeTransport(iframe, origin === OPAQUE ? origin : exactOrigin(origin)));
    this.#opaque = origin === OPAQUE;
    this.#upgrade = upgrade;
    this.#iframe = iframe;
    // A frame with its initial empty document will load another one and report it.
    const empty = iframe.contentDocument?.URL === 'about:blank';
    if (!empty) this.#timer = setTimeout(this.#release, PATIENCE);
    this.unwatch = isWindow
      ? watchWindow(/** @type {Window} */ (target), (why) => this.lost(why))
      : watchIframe(iframe, this);
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
  end() {
    clearTimeout(this.#timer);
    super.end();
  }

  /** Called when the frame has loaded a document, or fired `load` for another reason. */
  suspect() {
    // A document that runs this library identifies itself: by `here` when it begins, and by its
    // port when it ends.
    if (this.port || this.#document !== undefined) return;
    // A foreign app cannot be asked, but a document of this page's own origin can be compared. An
    // app that listened before this event may have waited for it.
    if (this.#waiting || this.#spokeEarly) this.#release();
    else if (this.#shown === null || this.#shown !== this.#iframe.contentDocument)
      this.#replaced('Another document is there now');
    this.#spokeEarly = false;
  }

  /** Called when this page is going away. */
  leave() {
    this.#replaced('The page was closed');
  }

  /** @param {string} why */
  #replaced(why) {
    this.isReplaced = true;
    this.lost(new AbpError('DISCONNECTED', why));
  }

  #greet() {
    if (this.#upgrade !== 'none') this.say('hello', { to: this.#name });
  }

  /**
   * A sandboxed frame that navigates keeps its window and its origin. So messages from the window
   * are only trusted once the document, whose mark is secret, has confirmed that it is still there.
   * @override
   * @param {unknown} data
   */
  believes(data) {
    this.#spokeEarly ||= this.#waiting !== undefined;
    this.#release();
    if (!this.#opaque) return true;
    if (this.#document === undefined)
      warn('a sandboxed app must use hostChannel: only a port identifies its document');
    else if (this.#early.length < MAX_EARLY_MESSAGES) this.#early.push(data);
    return false;
  }

  /**
   * @override
   * @param {string} word
   * @param {unknown} data
   * @param {readonly MessagePort[]} ports
   */
  onWord(word, data, ports) {
    const document = getOwn(data, 'document');
    switch (word) {
      case 'here':
        if (this.#document !== undefined && this.#document !== document)
          return this.lost(new AbpError('DISCONNECTED', 'Another document was loaded'));
        this.#document = document;
        this.#release();
        return this.#greet();
      case 'offer':
        if (getOwn(data, 'to') !== this.#name || ports.length !== 1 || this.port) return;
        this.#document = document;
        this.say('taken', { to: this.#name });
        this.port = portChannel(ports[0]);
        this.#release();
        return ports[0];
      case 'moved':
        if (!this.port || document !== this.#document) return;
        for (const message of this.#early.splice(0)) this.receive(message);
        this.listenTo(this.port);
    }
  }

  #release = () => {
    if (!this.#waiting || (this.#opaque && !this.port)) return;
    clearTimeout(this.#timer);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#shown = this.#iframe.contentDocument ?? null;
    for (const [message, transfer] of waiting) {
      try {
        super.post(message, transfer);
      } catch (error) {
        answerUnsent(message, error, this);
      }
    }
  };
}

/**
 * Without `origins` it is for a view, which any page may embed: the origin is detected.
 * @internal for `@abp-bridge/mcp-apps`
 */
export class AppChannel extends WindowChannel {
  #document = secret();
  /** The host to which the port was offered. @type {unknown} */
  #host;
  /**
   * This side's end of the port, until the host has taken the other.
   * @type {MessagePort | undefined}
   */
  #offered;
  #upgrade;

  /** @param {AppOptions} options */
  constructor(options) {
    requireOptions('hostChannel', options, APP_OPTIONS);
    const { origins, host = parent, upgrade = 'frames' } = options;
    requireWindow(host);
    super(hostTransport(host, origins?.map((origin) => exactOrigin(origin)) ?? originOf(host)));
    this.#upgrade = upgrade;
    // A page dies with the one that embeds it, but not with the one that opened it.
    if (host !== globalThis.parent) this.unwatch = watchWindow(host, (why) => this.lost(why));
    this.say('here', { document: this.#document });
  }

  /** @override */
  end() {
    this.#offered?.close();
    super.end();
  }

  /**
   * @override
   * @param {string} word
   * @param {unknown} data
   */
  onWord(word, data) {
    const to = getOwn(data, 'to');
    if (word === 'hello' && this.#upgrade !== 'none' && !this.port && to !== this.#host) {
      this.#host = to;
      this.#offered?.close();
      const { port1, port2 } = new MessageChannel();
      this.#offered = port1;
      this.say('offer', { to, document: this.#document }, [port2]);
    } else if (word === 'taken' && this.#offered && to === this.#host) {
      this.say('moved', { document: this.#document });
      this.port = portChannel(this.#offered);
      this.#offered = undefined;
      this.listenTo(this.port);
    }
  }
}

/**
 * The origin of the page that embeds this one; undefined if the browser does not reveal it. A page
 * of the same origin can be asked, and some browsers list the origins of the others.
 * @param {Window} host
 */
function originOf(host) {
  const { ancestorOrigins } = /** @type {Partial<Location>} */ (location);
  const origin = safely(() => host.origin) ?? ancestorOrigins?.[0];
  return origin === undefined ? undefined : [origin];
}

/**
 * Connects an app to its host, whose origin is one of several, or unknown until it has sent
 * something. As long as this page lives, that window has the same document: a page dies with the
 * one that embeds it.
 * @param {Window} host
 * @param {readonly string[]} [origins] default: any
 */
function hostTransport(host, origins) {
  let possible = origins && [...new Set(origins)];
  const hear = (/** @type {MessageEvent} */ event) => {
    const { isTrusted, source, origin } = event;
    if (!isTrusted || source !== host || source === globalThis.window) return;
    if (possible && !possible.includes(origin)) return;
    possible = [origin];
    transport.receive(event.data, event.ports);
  };
  addEventListener('message', hear);
  const transport = Object.assign(new Receiver(), {
    /**
     * The browser delivers a message only to the host's origin.
     * @type {Transport['post']}
     */
    post(message, transfer) {
      if (transport.stopped) return;
      // Until the origin is known, only messages without secrets are posted. No target names an
      // opaque origin.
      const targets = possible ?? [OPAQUE];
      for (const origin of targets)
        host.postMessage(message, {
          targetOrigin: origin === OPAQUE ? '*' : origin,
          transfer: targets.length === 1 ? transfer : undefined,
        });
    },
    end: () => removeEventListener('message', hear),
  });
  return transport;
}
