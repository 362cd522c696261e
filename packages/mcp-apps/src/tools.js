/**
 * An app's capabilities as the tools of its view. The view's host is one more agent of the app: its
 * calls are the app's calls, with the same limits, checks and cancels.
 */
import {
  AbpError,
  Client,
  Receiver,
  getOwn,
  isRecord,
  markedTransfer,
  transfer,
  wholeOf,
} from 'abp-bridge/driver';
import { defined } from './protocol.js';
import { toolResult } from './results.js';

/** @import { Exposed } from 'abp-bridge/driver' */
/** @import { Transport } from 'abp-bridge/driver' */

/** The member for a tool's capability, for agents of this library. */
export const CAPABILITY = 'abp-bridge/capability';
/** Characters of a tool's name: the limit of the strictest known model. */
const MAX_NAME = 64;
const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'];

/**
 * The tools that a view offers to its host.
 * @typedef {object} Tools
 * @property {(host: { name?: string, version?: string }, changed: () => void) => void} open begins
 *   a session; call `changed` when the list has changed
 * @property {() => unknown[]} list returns the tools, as MCP describes them
 * @property {(params: import('./protocol.js').Params, context: ToolContext) => unknown} call
 *   returns the result of a tool
 * @property {(reason: string) => Promise<void>} close stops running calls; resolves when they have
 *   stopped
 */

/**
 * @typedef {object} ToolContext The context of a tool's call.
 * @property {AbortSignal} signal
 * @property {boolean} whole whether the host is of this library, and accepts data without
 *   conversion
 * @property {((info: { progress: number, total?: number, message?: string }) => void) | undefined}
 *   progress
 */

/**
 * The capabilities of an exposed app as tools, for `createView`.
 * @param {Exposed} exposed the result of `expose`
 * @returns {Tools}
 */
export const toolsOf = (exposed) => new AppTools(exposed);

class AppTools {
  #exposed;
  /**
   * The names of the tools, by capability: a tool keeps its own when the list changes.
   * @type {Map<string, string>}
   */
  #tools = new Map();
  /** The reverse. @type {Map<unknown, string>} */
  #capabilities = new Map();
  /** A new one for each session with a host. @type {Client | undefined} */
  #client;
  /**
   * Settles when the app has answered: a foreign app may take its time.
   * @type {Promise<unknown> | undefined}
   */
  #session;
  #hasListed = false;
  /** Stops the running calls. */
  #stop = new AbortController();
  /** @type {Set<Promise<unknown>>} */
  #running = new Set();

  /** @param {Exposed} exposed */
  constructor(exposed) {
    this.#exposed = exposed;
  }

  /** @type {Tools['open']} */
  open({ name = 'unknown', version = '0' }, changed) {
    this.#client?.close();
    const client = new Client(() => this.#connection(), {
      agent: { name, version },
      limits: { grace: wholeOf(this.#exposed.limits) },
      upgrade: 'none',
      // It is answered when the app is ready, or closed with it.
      timeout: 0,
      onCapabilitiesChanged: changed,
    });
    this.#client = client;
    this.#stop = new AbortController();
    // If there is no app, calls return the reason.
    this.#session = client.reconnect().then(
      () => this.#hasListed && changed(),
      () => {},
    );
  }

  /** A connection to the app with both ends here: values are not copied. */
  #connection() {
    const [agent, app] = [new Receiver(), new Receiver()];
    /**
     * @param {Receiver} from
     * @param {Receiver} to
     * @returns {Transport}
     */
    const end = (from, to) =>
      Object.assign(from, {
        carries: [],
        /**
         * @param {any} message
         * @param {Transferable[]} [moved]
         */
        post(message, moved) {
          if (moved) transfer(message.payload, moved);
          to.receive(message);
        },
        end: () => to.lose(),
      });
    this.#exposed.accept(end(app, agent));
    return end(agent, app);
  }

  list() {
    this.#hasListed = true;
    const offered = this.#exposed.capabilities.filter(({ available }) => available);
    // Names that need no change are assigned first, so that the order of a list does not matter.
    const isFine = (/** @type {string} */ name) => Number(/^\w{1,64}$/.test(name));
    const names = offered.map(({ name }) => name).sort((a, b) => isFine(b) - isFine(a));
    for (const name of names) if (!this.#tools.has(name)) this.#name(name);
    return offered.map((capability) => toolOf(capability, this.#tools.get(capability.name)));
  }

  /**
   * The tool name of a capability, in the form that every model accepts.
   * @param {string} capability
   */
  #name(capability) {
    const plain = capability.replace(/\W/g, '_').slice(0, MAX_NAME);
    const isFree = plain !== '' && capability.length <= MAX_NAME && !this.#capabilities.has(plain);
    const tool = isFree ? plain : `${plain.slice(0, MAX_NAME - 9)}_${markOf(capability)}`;
    this.#tools.set(capability, tool);
    this.#capabilities.set(tool, capability);
  }

  /** @type {Tools['call']} */
  call(params, context) {
    const calling = this.#call(params, context);
    this.#running.add(calling);
    return calling.finally(() => this.#running.delete(calling));
  }

  /**
   * @param {import('./protocol.js').Params} params
   * @param {ToolContext} context
   */
  async #call({ name: tool, arguments: args = {} }, { signal, whole, progress }) {
    // Another session may begin meanwhile.
    for (let session; session !== this.#session;) await (session = this.#session);
    if (!this.#client) throw new AbpError('NOT_INITIALIZED', 'The view has not begun');
    // Hosts may call tools that they know from elsewhere.
    if (!this.#capabilities.has(tool)) this.list();
    const capability = this.#capabilities.get(tool) ?? String(tool);
    const options = {
      signal: AbortSignal.any([signal, this.#stop.signal]),
      ...(progress && { onProgress: rising(progress) }),
    };
    const response = await this.#client.call(capability, args, options);
    const result = await toolResult(response, whole);
    const moved = whole && markedTransfer(response);
    return moved ? transfer(result, moved) : result;
  }

  /** @type {Tools['close']} */
  async close(reason) {
    const client = this.#client;
    this.#stop.abort(reason);
    // Calls that wait for an app which does not answer would wait for ever.
    if (!client?.connected) client?.close();
    await Promise.allSettled(this.#running);
    client?.close();
  }
}

/**
 * Eight characters that distinguish names which would be equal.
 * @param {string} text
 */
function markOf(text) {
  // FNV-1a: it only shapes a name.
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}

/**
 * A capability as MCP describes tools.
 * @param {any} capability
 * @param {unknown} name of the tool
 */
function toolOf(capability, name) {
  const { description, deprecationMessage, annotations = {} } = capability;
  const notes = [
    description,
    capability.deprecated && `Deprecated. ${deprecationMessage ?? ''}`.trim(),
    capability.experimental && 'Experimental.',
  ];
  const hints = Object.entries(annotations).filter(
    ([key, value]) => HINTS.includes(key) && typeof value === 'boolean',
  );
  return defined({
    name,
    title: capability.name,
    description: notes.filter(Boolean).join('\n'),
    inputSchema: objectSchema(capability.inputSchema) ?? { type: 'object' },
    outputSchema: objectSchema(capability.outputSchema),
    annotations: hints.length ? Object.fromEntries(hints) : undefined,
    _meta: { [CAPABILITY]: capability.name },
  });
}

/**
 * A schema whose root is an object, as MCP requires.
 * @param {unknown} schema
 */
const objectSchema = (schema) =>
  isRecord(schema) && (getOwn(schema, 'type') ?? 'object') === 'object'
    ? { ...schema, type: 'object' }
    : undefined;

/**
 * Progress for MCP: it rises each time.
 * @param {NonNullable<ToolContext['progress']>} report
 * @returns {(info: any) => void}
 */
function rising(report) {
  let last = -Infinity;
  return ({ progress, total, stage, status }) => {
    const message = [stage, status].filter(Boolean).join(': ');
    // An equal value may come with a new message.
    if (progress <= last && !message) return;
    last = progress > last ? progress : last + 2 ** -20;
    report({ progress: last, ...(total > 0 && { total }), ...(message && { message }) });
  };
}
