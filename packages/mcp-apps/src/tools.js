/**
 * An app's capabilities as the tools of its view. It is one more agent of the app: its calls are the app's calls, with the
 * same limits, checks and cancels.
 */
import { invokeReportingErrors, reasonText } from '../../../js/common/errors.js';
import { transfer } from '../../../js/common/transfer.js';
import { getOwn, isRecord } from '../../../js/common/values.js';
import { whenAborted } from '../../../js/common/waiting.js';
import { LIST_CHANGED } from '../../../js/wire/messages.js';
import { ViewToolNames } from './names.js';
import { defined } from './protocol.js';
import { toolResult } from './results.js';

/** @import { Exposed } from '../../../js/app/expose.js' */
/** @import { Transport } from '../../../js/transports/transport.js' */
/** @import { ProgressInfo } from '../../../js/wire/messages.js' */

/** What agents of this library call the capability of a tool. */
export const CAPABILITY = 'abp-bridge/capability';
const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'];

/**
 * What a view offers to its host as tools.
 * @typedef {object} Tools
 * @property {(host: { name?: string, version?: string }, changed: () => void) => void} open begins; `changed` is to be
 *   called when the list has changed
 * @property {() => unknown[]} list the tools, as MCP describes them
 * @property {(params: import('./protocol.js').Params, context: ToolContext) => unknown} call the result of a tool
 * @property {(reason: string) => Promise<void>} close stops what runs; resolves when it has stopped
 */

/**
 * @typedef {object} ToolContext What a tool gets besides its arguments.
 * @property {AbortSignal} signal
 * @property {boolean} whole whether the host is ours, and takes data as it is
 * @property {((info: { progress: number, total?: number, message?: string }) => void) | undefined} progress
 */

/** @typedef {{ type: string, id: string, payload: any }} AppMessage what an app says to its agent */
/** @typedef {{ payload: import('../../../js/wire/messages.js').Response, transfer?: Transferable[] }} Answer */

/**
 * The capabilities of an exposed app as tools, for `createView`.
 * @param {Exposed} exposed what `expose` returned
 * @returns {Tools}
 */
export const toolsOf = (exposed) => new AppTools(exposed);

class AppTools {
  #exposed;
  #names = new ViewToolNames();
  /** Calls that were not answered, by id. @type {Map<string, { settle: (answer: Answer) => void, progress?: (info: ProgressInfo) => void }>} */
  #pending = new Map();
  #next = 0;
  #changed = () => {};
  #hasListed = false;
  #begun = () => {};
  /** Resolves when the app has answered: one of others' making takes its time. @type {Promise<void>} */
  #session = new Promise((resolve) => (this.#begun = resolve));
  /** That of the session; undefined when the app was closed. @type {Transport | undefined} */
  #transport;

  /** @param {Exposed} exposed */
  constructor(exposed) {
    this.#exposed = exposed;
  }

  /** @type {Tools['open']} */
  open({ name = 'unknown', version = '0' }, changed) {
    this.#changed = changed;
    if (this.#transport) {
      this.#transport.onClose?.();
      this.#ended();
      this.#session = new Promise((resolve) => (this.#begun = resolve));
    }
    /** @type {Transport} */
    const transport = {
      carries: [],
      post: (message, moved) =>
        transport === this.#transport && this.#receive(/** @type {AppMessage} */ (message), moved),
      onMessage() {},
      close: () => transport === this.#transport && this.#ended(),
    };
    this.#transport = transport;
    this.#exposed.accept(transport);
    const features = { notifications: true, progress: true, elicitation: false };
    const agent = { name, version };
    this.#say('initialize', { agent, protocolVersion: '0.1', features }, 'initialize');
  }

  list() {
    this.#hasListed = true;
    const offered = this.#exposed.capabilities.filter(({ available }) => available);
    this.#names.add(offered.map(({ name }) => name));
    return offered.map((capability) => toolOf(capability, this.#names.toolOf(capability.name)));
  }

  /** @param {import('./protocol.js').Params} params @param {ToolContext} context */
  async call({ name: tool, arguments: args = {} }, { signal, whole, progress }) {
    await this.#session;
    // Hosts may call what they have read of elsewhere.
    if (this.#names.capabilityOf(tool) === undefined) this.list();
    const capability = this.#names.capabilityOf(tool) ?? String(tool);
    const answer = await this.#call(capability, args, signal, progress && rising(progress));
    const result = await toolResult(answer.payload, whole);
    return whole && answer.transfer ? transfer(result, answer.transfer) : result;
  }

  /**
   * @param {string} capability @param {unknown} params @param {AbortSignal} signal
   * @param {((info: ProgressInfo) => void) | undefined} progress
   * @returns {Promise<Answer>}
   */
  #call(capability, params, signal, progress) {
    if (!this.#transport) return Promise.resolve(closed('unstarted'));
    const callId = `tool-${++this.#next}`;
    return new Promise((resolve) => {
      let release = () => {};
      const settle = (/** @type {Answer} */ answer) => (release(), resolve(answer));
      this.#pending.set(callId, { settle, progress });
      const options = { callId, ...(progress && { progressToken: callId }) };
      this.#say('capabilities/call', { capability, params, options }, callId);
      release = whenAborted(signal, () => this.#cancel(callId, reasonText(signal.reason)));
    });
  }

  /** @param {string} callId @param {string | undefined} reason */
  #cancel(callId, reason) {
    this.#say('capabilities/cancel', { callId, reason }, `cancel-${callId}`);
  }

  /** @type {Tools['close']} */
  async close(reason) {
    const transport = this.#transport;
    const running = [...this.#pending].map(
      ([callId, record]) =>
        new Promise((resolve) => {
          const { settle } = record;
          record.settle = (answer) => (settle(answer), resolve(undefined));
          this.#cancel(callId, reason);
        }),
    );
    await Promise.all(running);
    // A view that has begun again meanwhile has a session of its own.
    if (transport === this.#transport) this.#say('shutdown', { reason });
  }

  /** @param {string} type @param {unknown} payload @param {string} [id] */
  #say(type, payload, id) {
    this.#transport?.onMessage({ type, id, timestamp: Date.now(), payload }, []);
  }

  /** @param {AppMessage} message @param {Transferable[]} [moved] */
  #receive({ type, id, payload }, moved) {
    switch (type) {
      case 'initialize-result':
        this.#begun();
        return this.#hasListed ? this.#changed() : undefined;
      case 'capabilities/call-result':
        this.#pending.get(id)?.settle({ payload, transfer: moved });
        return void this.#pending.delete(id);
      case 'progress':
        invokeReportingErrors(this.#pending.get(payload.operationId)?.progress, payload);
        return;
      case 'notification':
        if (payload.event === LIST_CHANGED) this.#changed();
    }
  }

  /** The app was closed. */
  #ended() {
    this.#transport = undefined;
    this.#begun();
    for (const { settle } of this.#pending.values()) settle(closed('unknown'));
    this.#pending.clear();
  }
}

/** What a call is answered whose app was closed. @param {import('../../../js/types/outcome.js').CallOutcome} outcome @returns {Answer} */
const closed = (outcome) => {
  const error = { code: 'DISCONNECTED', message: 'The app was closed', retryable: true };
  return { payload: { success: false, error, metadata: { outcome } } };
};

/** A capability as MCP describes tools. @param {any} capability @param {string} name of the tool */
function toolOf(capability, name) {
  const { description, deprecationMessage, annotations = {} } = capability;
  const notes = [
    description,
    capability.deprecated && `Deprecated. ${deprecationMessage ?? ''}`.trim(),
    capability.experimental && 'Experimental.',
  ];
  const hints = HINTS.filter((hint) => typeof annotations[hint] === 'boolean');
  return defined({
    name,
    title: capability.name,
    description: notes.filter(Boolean).join('\n'),
    inputSchema: objectSchema(capability.inputSchema) ?? { type: 'object' },
    outputSchema: objectSchema(capability.outputSchema),
    annotations: hints.length
      ? Object.fromEntries(hints.map((hint) => [hint, annotations[hint]]))
      : undefined,
    _meta: { [CAPABILITY]: capability.name },
  });
}

/** A schema whose root is an object, as MCP wants them. @param {unknown} schema */
const objectSchema = (schema) =>
  isRecord(schema) && (getOwn(schema, 'type') ?? 'object') === 'object'
    ? { ...schema, type: 'object' }
    : undefined;

/**
 * Progress as MCP takes it: it rises each time.
 * @param {NonNullable<ToolContext['progress']>} report
 * @returns {(info: any) => void}
 */
function rising(report) {
  let last = -Infinity;
  return ({ progress, total, stage, status }) => {
    const message = [stage, status].filter(Boolean).join(': ');
    // What does not rise may still say something new.
    if (progress <= last && !message) return;
    last = progress > last ? progress : last + 2 ** -20;
    report({ progress: last, ...(total > 0 && { total }), ...(message && { message }) });
  };
}
