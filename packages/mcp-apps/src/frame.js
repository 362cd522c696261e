/**
 * The iframe in which a host shows a view: it has the page of a sandbox, which gets the view's
 * document.
 */
import { AbpError, copyRecord, fromBase64, getOwn, warn } from 'abp-bridge/driver';
import { OPAQUE_ORIGIN, OWN_ORIGIN, allowOf, grantedOf } from './policy.js';
import { MIME_TYPE, defined } from './protocol.js';

/** The frame of each iframe. @type {WeakMap<HTMLIFrameElement, Frame>} */
const owners = new WeakMap();
/** Frames that show a view. @type {Set<Frame>} */
const shown = new Set();

const mistake = (/** @type {string} */ why) => new AbpError('INVALID_PARAMS', why);

/** An iframe, as long as it shows the view of one host. */
export class Frame {
  #own;
  #owner;

  /**
   * Loads the sandbox.
   * @param {HTMLIFrameElement} iframe
   * @param {import('./host.js').HostOptions} options of its host
   */
  constructor(iframe, { sandbox, server, resource, listed }) {
    if (!sandbox || !resource)
      throw mistake('createHost with an iframe needs sandbox and resource');
    this.iframe = iframe;
    const own = typeof sandbox === 'function';
    const { href, origin } = new URL(own ? sandbox(server) : sandbox, location.href);
    if (origin === location.origin)
      throw mistake('The sandbox must have a different origin than this page');
    const html = htmlOf(resource);
    const ui = { ...metadataOf(listed), ...metadataOf(resource) };
    const { csp, permissions, dropped } = grantedOf(ui.csp, ui.permissions);
    if (dropped.length)
      warn(`not granted to the view, although its metadata asks for it: ${dropped.join(', ')}`);
    iframe.setAttribute('sandbox', 'allow-scripts allow-same-origin allow-forms');
    iframe.allow = allowOf(permissions, origin);
    // Messages to its previous host must not reach this one.
    if (owners.has(iframe)) blank(iframe);
    this.origin = origin;
    /** The granted part of the view's metadata. */
    this.granted = defined({ csp, permissions });
    /** The data of the view for the sandbox. */
    this.view = { html, csp, permissions, sandbox: own ? OWN_ORIGIN : OPAQUE_ORIGIN };
    this.#own = own;
    this.#owner = server ?? iframe;
    /** The iframe's, as long as that stays in its document. */
    this.window = iframe.contentWindow;
    this.#claim();
    owners.set(iframe, this);
    // Before the channel is made, which must not receive messages of the iframe's former content.
    iframe.src = href;
  }

  /** True if the iframe still has the window that the view was shown in. */
  get isThere() {
    return this.window !== null && this.iframe.contentWindow === this.window;
  }

  /**
   * A view with the origin of its sandbox can access all other sandboxes of this origin, and so
   * their views.
   */
  #claim() {
    for (const other of shown) {
      if (!other.isThere) shown.delete(other);
      else if (
        other.origin === this.origin &&
        other.#owner !== this.#owner &&
        (other.#own || this.#own)
      )
        throw mistake(
          `The sandbox's origin ${this.origin} is in use for another server: give the views of each server an origin of their own`,
        );
    }
    shown.add(this);
  }

  /**
   * Empties the iframe, unless another host has taken it.
   * @param {boolean} remove whether to take it out of its document
   */
  leave(remove) {
    shown.delete(this);
    if (owners.get(this.iframe) !== this) return;
    owners.delete(this.iframe);
    if (remove) this.iframe.remove();
    else blank(this.iframe);
  }
}

/**
 * Gives an iframe a new, empty window: messages of its former content are not received any more,
 * and it leaves no entry in the history. The element itself stays.
 * @param {HTMLIFrameElement} iframe
 */
function blank(iframe) {
  const { parentNode, nextSibling } = iframe;
  iframe.remove();
  iframe.removeAttribute('src');
  parentNode?.insertBefore(iframe, nextSibling);
}

/** @param {unknown} described */
const metadataOf = (described) => copyRecord(getOwn(getOwn(described, '_meta'), 'ui'));

/** @param {import('./host.js').Resource} resource */
function htmlOf({ mimeType, text, blob }) {
  if (mimeType !== undefined && mimeType.replace(/\s/g, '') !== MIME_TYPE)
    throw mistake(`The resource is not a view: its type is ${mimeType}`);
  if (typeof text === 'string') return text;
  if (typeof blob === 'string') return new TextDecoder().decode(fromBase64(blob));
  throw mistake('The resource has neither text nor blob');
}
