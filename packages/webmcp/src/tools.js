/**
 * The capabilities of an app as WebMCP tools, whose calls are those of one more agent of the app.
 */
import {
  AbpError,
  Client,
  abp,
  followSignal,
  isLoopback,
  isRecord,
  plain,
  portTransport,
  reportError,
  requireBounded,
  safely,
  toErrorObject,
  unstarted,
  warn,
  wholeOf,
  withBase64,
} from 'abp-bridge/driver';
import { CALLS, CANCELLING, CallLog, RUNNING, callsTool, saidBy } from './call-log.js';

/** Ms between two checks of capabilities whose availability is decided by functions. */
const POLL = 1000;
/** Names that WebMCP accepts. */
const NAME = /^[\w.-]{1,128}$/;
/** Characters of an output schema in a description. */
const MAX_SCHEMA_LENGTH = 2000;
const HINTS = ['readOnlyHint', 'untrustedContentHint', 'consequentialHint', 'debugging'];
const REASON = 'The agent cancelled the call (WebMCP)';

/**
 * @typedef {object} Tool
 * @property {string} name
 * @property {string} description
 * @property {string} [title]
 * @property {unknown} inputSchema
 * @property {any} [annotations]
 * @property {Function} [execute]
 */

export class Tools {
  #context;
  #app;
  #exposedTo;
  /**
   * By name: the tool as text, and the controller that unregisters it.
   * @type {Map<string, { text: string, controller: AbortController }>}
   */
  #registered = new Map();
  /** Tools with a warning in the console. @type {Set<string>} */
  #refused = new Set();
  /** True if a rejected tool may be accepted later: another library may give up its name. */
  #retries = false;
  #onToolChange = () => this.#retries && this.update();
  #log = new CallLog();
  #calls = callsTool(this.#log);
  #client;
  /**
   * The app's end of the session.
   * @type {import('abp-bridge/driver').AppTransport | undefined}
   */
  #transport;
  /** @type {Promise<void> | undefined} */
  #connecting;
  #poll;
  #closed = false;

  /**
   * @param {any} context `document.modelContext`
   * @param {import('./index.js').ExposedApp} app
   * @param {string[]} exposedTo
   */
  constructor(context, app, exposedTo) {
    this.#context = context;
    this.#app = app;
    this.#exposedTo = exposedTo.filter((origin) => isTrustworthy(origin) || this.#refuse(origin));
    this.#client = new Client(() => this.#open(), {
      agent: { name: 'WebMCP', version: '0' },
      limits: { grace: wholeOf(app.exposed.limits) },
      // It is answered when the app is ready, or closed with it.
      timeout: 0,
      onCapabilitiesChanged: () => this.update(),
    });
    context.addEventListener?.('toolchange', this.#onToolChange);
    this.#poll = setInterval(() => this.#decidesByFunctions && this.update(), POLL);
    this.update();
  }

  /** True if functions decide what is available: there is no event for their changes. */
  get #decidesByFunctions() {
    return [...(this.#app.registry?.all.values() ?? [])].some(
      ({ available, requirements }) =>
        typeof available === 'function' || requirements?.some((r) => typeof r.met === 'function'),
    );
  }

  #open() {
    const { port1, port2 } = new MessageChannel();
    // Both ends are in this page.
    const carries = /** @type {const} */ (['frames']);
    this.#transport = Object.assign(portTransport(port1), { prepare: toPlain, carries });
    this.#app.exposed.accept(this.#transport);
    return port2;
  }

  /** Begins a session, unless there is one. */
  async #connect() {
    if (this.#client.connected) return;
    await (this.#connecting ??= this.#client
      .reconnect()
      .finally(() => (this.#connecting = undefined)));
  }

  // --- The tools ---------------------------------------------------------------------------------

  /** Registers available capabilities, and unregisters the others. */
  update() {
    this.#update().catch((error) => this.#closed || reportError(error));
  }

  async #update() {
    const { registry } = this.#app;
    // The capabilities of a foreign app are known once there is a session.
    if (!registry) await this.#connect();
    const capabilities = registry?.list() ?? (await this.#client.listCapabilities());
    if (this.#closed) return;
    /** @type {Map<string, Tool>} */
    const wanted = new Map([[CALLS, this.#calls]]);
    for (const capability of capabilities) {
      if (capability.available === false) continue;
      if (NAME.test(capability.name)) wanted.set(capability.name, toolOf(capability));
      else this.#refuse(capability.name, "a tool's name has 1 to 128 letters, digits, _, - and .");
    }
    for (const [name, { text, controller }] of this.#registered) {
      const tool = wanted.get(name);
      if (tool && JSON.stringify(tool) === text) wanted.delete(name);
      else {
        this.#registered.delete(name);
        controller.abort();
      }
    }
    this.#retries = false;
    for (const tool of wanted.values()) void this.#register(tool);
  }

  /** @param {Tool} tool */
  async #register(tool) {
    const { name } = tool;
    const controller = new AbortController();
    const { signal } = controller;
    this.#registered.set(name, { text: JSON.stringify(tool), controller });
    const execute = (/** @type {unknown} */ input, /** @type {any} */ options) =>
      this.#call(name, input, options?.signal);
    // The browser does not identify callers, so this tool is hidden from other origins: it lists
    // the calls of this page's scripts, too.
    let exposedTo = tool === this.#calls ? [] : this.#exposedTo;
    /** Why the browser rejects the schema. @type {unknown} */
    let odd;
    for (;;) {
      const offered = odd ? { ...tool, inputSchema: { type: 'object' } } : tool;
      const options = { ...(exposedTo.length && { exposedTo }), signal };
      try {
        await this.#context.registerTool({ execute, ...offered }, options);
        return odd && this.#refuse(`the schema of ${name}`, toErrorObject(odd).message);
      } catch (/** @type {any} */ error) {
        if (signal.aborted) return;
        const isTaken = error?.name === 'InvalidStateError' || error?.name === 'NotAllowedError';
        // Polyfills cannot expose anything to other origins: then it is for this origin alone.
        if (exposedTo.length && error?.name === 'NotSupportedError') exposedTo = [];
        // Browsers accept a part of JSON Schema. Calls are checked here, so the tool works without
        // it.
        else if (!odd && !isTaken) odd = error ?? true;
        else {
          this.#refuse(name, toErrorObject(error).message);
          this.#registered.delete(name);
          this.#retries = true;
          return;
        }
      }
    }
  }

  /**
   * Warns in the console, once.
   * @param {string} what
   * @param {string} [why]
   */
  #refuse(what, why = 'tools can be exposed only to https origins and to localhost') {
    if (!this.#refused.has(what)) warn(`WebMCP cannot offer ${what}: ${why}`);
    this.#refused.add(what);
    return false;
  }

  // --- A call ------------------------------------------------------------------------------------

  /**
   * Never rejects: WebMCP would hide the error. Returns an object that is JSON: anything else
   * arrives as ambiguous text, or not at all.
   * @param {string} name
   * @param {unknown} params
   * @param {AbortSignal | undefined} signal undefined in polyfills and older browsers
   */
  async #call(name, params, signal) {
    // The browser passes no reason.
    const { controller: stop, release } = followSignal(signal, REASON);
    const call = this.#log.begin(name, () => this.#became(call));
    /** @type {any} */ let response;
    try {
      await this.#connect();
      response = await this.#client.call(name, params ?? {}, {
        callId: call.callId,
        signal: stop.signal,
        onProgress: ({ operationId: _, ...progress }) => (call.progress = progress),
      });
    } catch (error) {
      response = unstarted(error);
    }
    release();
    const told = response; // A copy has no `settled`, which asks when it is read.
    // The data is plain already.
    if (response.error) response = { ...response, error: plainError(response.error) };
    this.#log.end(call, response);
    const { outcome, ...metadata } = response.metadata ?? {};
    // A running handler may still report. Afterwards its core has the outcome.
    const end = ({ report = metadata.report } = {}) =>
      this.#log.end(call, { ...response, metadata: { ...metadata, report } });
    if (outcome === 'running') told.settled?.then(end, () => end());
    return { ...response, metadata: { ...response.metadata, callId: call.callId } };
  }

  /**
   * The outcome of a call, from the app's core.
   * @param {import('./call-log.js').Logged} call
   */
  #became({ callId, response }) {
    const { sessions } = this.#app.exposed;
    const { endpoint } = sessions.find(({ first }) => first === this.#transport) ?? {};
    endpoint?.advance(); // forgets old calls
    let packed = 0;
    if (endpoint && !endpoint.failed) {
      const { core } = endpoint;
      const { x, pointer } = core;
      packed = x.became(pointer, x.remembered(pointer, core.writeId(callId)));
    }
    const [fate, outcome] = [packed & 255, packed >> 8];
    if (fate === abp.FATE_RUNNING) return outcome === abp.PENDING ? RUNNING : CANCELLING;
    const cancelled = outcome === abp.CANCELLED || outcome === abp.TIMED_OUT;
    const said = response?.metadata?.outcome ?? '';
    // It was not made, or its core is gone.
    if (response && !packed)
      return ['unstarted', 'unknown'].includes(said) ? saidBy(response) : undefined;
    // Its handler's report is on its way.
    if (!response || said === 'running') return cancelled ? CANCELLING : RUNNING;
    // The handler returned a result that may not have been sent.
    const success =
      outcome === abp.COMPLETED && fate === abp.FATE_FINISHED && response.success !== false;
    return saidBy({
      ...{ success, cancelled },
      metadata: { outcome: success ? undefined : abp.FATES[fate] },
    });
  }

  /** Unregisters everything, and cancels running calls: WebMCP would let them run on. */
  close() {
    this.#closed = true;
    clearInterval(this.#poll);
    this.#context.removeEventListener?.('toolchange', this.#onToolChange);
    for (const { controller } of this.#registered.values()) controller.abort();
    this.#registered.clear();
    this.#client.close();
  }
}

/**
 * A capability as a tool.
 * @param {any} capability as the registry describes it
 * @returns {Tool}
 */
function toolOf(capability) {
  const { name, inputSchema, outputSchema, annotations = {}, alternatives } = capability;
  const { description, deprecated, deprecationMessage, experimental } = capability;
  const schema = outputSchema && safely(() => JSON.stringify(outputSchema), undefined);
  const words = [
    description || name,
    deprecated && `Deprecated${deprecationMessage ? `: ${deprecationMessage}` : '.'}`,
    alternatives?.length && `Alternatives: ${alternatives.join(', ')}.`,
    experimental && 'Experimental.',
    schema?.length <= MAX_SCHEMA_LENGTH && `\`data\` of the result follows ${schema}`,
  ];
  const hints = Object.entries(annotations).filter(
    ([key, value]) => HINTS.includes(key) && typeof value === 'boolean',
  );
  return {
    name,
    description: words.filter(Boolean).join('\n'),
    ...(typeof annotations.title === 'string' && { title: annotations.title }),
    inputSchema: isRecord(inputSchema) ? inputSchema : { type: 'object' },
    ...(hints.length && { annotations: Object.fromEntries(hints) }),
  };
}

/**
 * A handler's result as JSON and nothing else: bytes as base64.
 * @param {unknown} data
 */
async function toPlain(data) {
  try {
    requireBounded(data, { maxValues: 2 ** 24, maxCharacters: 2 ** 28 });
    if (data === undefined) return undefined;
    return plain(await withBase64(data));
  } catch (cause) {
    const why = `The result cannot be sent: ${toErrorObject(cause).message}`;
    throw new AbpError('OPERATION_FAILED', why, { cause });
  }
}

/** @param {import('abp-bridge/driver').ErrorObject} error */
const plainError = ({ details, ...error }) => safely(() => plain({ ...error, details }), error);

/**
 * True if the browser considers an origin trustworthy, as required for exposing tools to it.
 * @param {string} origin
 */
function isTrustworthy(origin) {
  const { protocol, hostname } = new URL(origin);
  return protocol === 'https:' || isLoopback(hostname);
}
