/**
 * The words of MCP Apps (`io.modelcontextprotocol/ui`) that both sides use, and the one that is
 * ours.
 */
import { firstOf, getOwn, textOf } from 'abp-bridge/driver';

/** @typedef {'inline' | 'fullscreen' | 'pip'} DisplayMode How much room a host gives a view. */

/**
 * What a view is told of its host. Hosts may add to it, and all of it may be absent.
 * @typedef {object} KnownContext
 * @property {'light' | 'dark'} [theme] which colours it shows
 * @property {{ variables?: Record<string, string>, css?: { fonts?: string } }} [styles] CSS
 *   variables, and rules for fonts
 * @property {DisplayMode} [displayMode] the one that holds
 * @property {DisplayMode[]} [availableDisplayModes] those that it has
 * @property {{ width?: number, maxWidth?: number, height?: number, maxHeight?: number }}
 *   [containerDimensions] CSS pixels
 * @property {string} [locale] BCP 47
 * @property {string} [timeZone] IANA
 * @property {string} [userAgent] the host's name for itself
 * @property {'web' | 'desktop' | 'mobile'} [platform] where it runs
 * @property {{ touch?: boolean, hover?: boolean }} [deviceCapabilities] how it is operated
 * @property {{ top: number, right: number, bottom: number, left: number }} [safeAreaInsets] CSS
 *   pixels
 * @property {{ id?: string | number, tool: { name: string, [key: string]: unknown } }} [toolInfo]
 *   the call that the view is for
 */

/**
 * @typedef {KnownContext & Record<string, unknown>} HostContext What a view is told of its host,
 *   and what hosts add.
 */

/** The version of the protocol between a view and its host. */
export const VERSION = '2026-01-26';
/** What a resource that is a view says of itself. */
export const MIME_TYPE = 'text/html;profile=mcp-app';
/**
 * Notifications of the protocol, by their short names.
 * @param {string} name
 */
export const notification = (name) => `ui/notifications/${name}`;
/** What only the host and its sandbox say to each other. */
export const SANDBOX = notification('sandbox-');
/** A sandbox of ours says that the view's document has gone, and another has come. */
export const VIEW_REPLACED = `${SANDBOX}view-replaced`;

/**
 * By this request, `{ id, settled }`, a side that has cancelled a tool's call learns what became of
 * it, at once or when its handler has settled: MCP has no answer to that. Both sides say in
 * `experimental` that they know it.
 */
export const OUTCOME = 'abp-bridge/outcome';
/** By these, a view keeps its state with its host. */
export const STATE = 'abp-bridge/state';

/**
 * What of this library's own the other side knows.
 * @param {unknown} capabilities
 * @param {string} word
 */
export const knows = (capabilities, word) =>
  getOwn(getOwn(capabilities, 'experimental'), word) !== undefined;

export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const CANCELLED = -32800;
/** What the protocol's text shows for a host that refuses. */
export const REFUSED = -32000;

/** Content blocks of a result that are read. */
const MAX_BLOCKS = 256;

/**
 * Who somebody is, by their own account.
 * @param {unknown} info
 * @returns {{ name?: string, version?: string }}
 */
export const infoOf = (info) => {
  const said = (/** @type {string} */ key) => textOf(getOwn(info, key))?.slice(0, 256);
  return defined({ name: said('name'), version: said('version') });
};

/**
 * What the other side says: any member may be anything.
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
 * An object without those members that are undefined.
 * @template {object} T
 * @param {T} members
 * @returns {T}
 */
export const defined = (members) =>
  /** @type {T} */ (
    Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
  );
