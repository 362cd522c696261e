/**
 * The methods and names of MCP Apps (`io.modelcontextprotocol/ui`) that both sides use, and those
 * of this library.
 */
import { firstOf, getOwn, textOf } from 'abp-bridge/driver';

/** @typedef {'inline' | 'fullscreen' | 'pip'} DisplayMode The room that a host gives a view. */

/**
 * A view's data on its host. Hosts may add members, and all members may be absent.
 * @typedef {object} KnownContext
 * @property {'light' | 'dark'} [theme] of its colours
 * @property {{ variables?: Record<string, string>, css?: { fonts?: string } }} [styles] CSS
 *   variables, and rules for fonts
 * @property {DisplayMode} [displayMode] the current one
 * @property {DisplayMode[]} [availableDisplayModes] those of the host
 * @property {{ width?: number, maxWidth?: number, height?: number, maxHeight?: number }}
 *   [containerDimensions] CSS pixels
 * @property {string} [locale] BCP 47
 * @property {string} [timeZone] IANA
 * @property {string} [userAgent] the host's name for itself
 * @property {'web' | 'desktop' | 'mobile'} [platform] of the host
 * @property {{ touch?: boolean, hover?: boolean }} [deviceCapabilities] of the user's device
 * @property {{ top: number, right: number, bottom: number, left: number }} [safeAreaInsets] CSS
 *   pixels
 * @property {{ id?: string | number, tool: { name: string, [key: string]: unknown } }} [toolInfo]
 *   the call that the view is for
 */

/**
 * @typedef {KnownContext & Record<string, unknown>} HostContext A view's data on its host, and the
 *   host's own members.
 */

/** The version of the protocol between a view and its host. */
export const VERSION = '2026-01-26';
/** The media type of a resource that is a view. */
export const MIME_TYPE = 'text/html;profile=mcp-app';
/**
 * Notifications of the protocol, by their short names.
 * @param {string} name
 */
export const notification = (name) => `ui/notifications/${name}`;
/** The prefix of notifications between the host and its sandbox. */
export const SANDBOX = notification('sandbox-');
/** Sent by a sandbox of this library when another document has replaced the view's. */
export const VIEW_REPLACED = `${SANDBOX}view-replaced`;

/**
 * The request `{ id, settled }` for the outcome of a cancelled tool call, answered at once or when
 * its handler has settled: MCP has no answer to a cancel. Both sides declare it in `experimental`.
 */
export const OUTCOME = 'abp-bridge/outcome';
/** The requests by which a view keeps its state with its host. */
export const STATE = 'abp-bridge/state';

/**
 * True if the other side declares an extension of this library.
 * @param {unknown} capabilities
 * @param {string} word
 */
export const knows = (capabilities, word) =>
  getOwn(getOwn(capabilities, 'experimental'), word) !== undefined;

export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const CANCELLED = -32800;
/** The code that the protocol's text shows for a host that refuses. */
export const REFUSED = -32000;

/** Content blocks of a result that are read. */
const MAX_BLOCKS = 256;

/**
 * The name and version of a peer, in its own words.
 * @param {unknown} info
 * @returns {{ name?: string, version?: string }}
 */
export const infoOf = (info) => {
  const said = (/** @type {string} */ key) => textOf(getOwn(info, key))?.slice(0, 256);
  return defined({ name: said('name'), version: said('version') });
};

/**
 * Data from the other side: any member may have any type.
 * @typedef {Record<string, any>} Params
 */

/**
 * The texts of a tool's result.
 * @param {unknown} result
 */
export const textsOf = (result) =>
  firstOf(getOwn(result, 'content'), MAX_BLOCKS)
    .filter((block) => getOwn(block, 'type') === 'text')
    .map((block) => getOwn(block, 'text'))
    .filter((text) => typeof text === 'string');

/**
 * An object without its undefined members.
 * @template {object} T
 * @param {T} members
 * @returns {T}
 */
export const defined = (members) =>
  /** @type {T} */ (
    Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
  );
