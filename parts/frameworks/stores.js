/**
 * What the entries for frameworks share: a connection and a call as stores, whose state is replaced
 * when it changes. A component shows the state, and ends what it began when it goes.
 *
 * How it is made: each entry (React, Vue, Svelte) gives these two stores the form of its framework,
 * and no rule of its own. Sessions begin again as `connect` and parts/retry/retry.js do it; how a call
 * ended is what the client says.
 */
import { connect } from '../main/connect.js';
import { AbpError, invokeReportingErrors, toErrorObject } from '../../js/common/errors.js';
import { followSignal } from '../../js/common/signals.js';
import { milliseconds } from '../../js/common/values.js';

/**
 * @import { CallOptions, Client, ConnectOptions, ConnectTarget } from '../../js/agent/client.js'
 * @import { Opener } from '../../js/agent/client.js'
 */
/** @import { CallArguments, NameOf, ResponseOf } from '../../js/types/app.js' */
/** @import { ProgressInfo, Response } from '../../js/wire/messages.js' */

/**
 * @typedef {HTMLIFrameElement | ConnectTarget | Opener | null | undefined} Target Where the app is:
 *   what `connect` takes, or nothing while it is not there yet.
 */

/**
 * @template [App=any] what it knows of the app; see `connect`
 * @typedef {object} ConnectionState A connection, as a component shows it.
 * @property {'idle' | 'connecting' | 'connected' | 'reconnecting' | 'failed'} status `idle`: there
 *   is no target; `failed`: nothing more is tried, unless the iframe loads a document again
 * @property {Client<App> | undefined} client from the first session on
 * @property {AbpError | undefined} error why it is not connected, if that is known
 */

/**
 * @template [App=any] what the client knows of the app
 * @template {NameOf<App>} [Name=NameOf<App>] the capability
 * @typedef {object} CallState A call, as a component shows it.
 * @property {boolean} pending whether a call is under way
 * @property {ProgressInfo | undefined} progress of the last call
 * @property {ResponseOf<App, Name> | undefined} response of the last call, once it has settled
 */

/**
 * What makes a call of one capability, and the name of what cancels it.
 * @template App
 * @template {NameOf<App>} Name
 * @typedef {object} Calling
 * @property {(...rest: CallArguments<App, Name>) => Promise<ResponseOf<App, Name>>} call its
 *   params, and the options of the call
 * @property {(reason?: unknown) => void} cancel cancels the call that is under way
 */

/** @param {unknown} error */
const abpError = (error) =>
  error === undefined || error instanceof AbpError ? error : AbpError.from(toErrorObject(error));

/** @template {object} T */
class Store {
  /** @type {Set<(state: T) => void>} */
  #listeners = new Set();
  #setters = 0;

  /** @param {T} state */
  constructor(state) {
    this.state = state;
  }

  /** The state, which is another object after each change. */
  get = () => this.state;

  /**
   * @param {(state: T) => void} listener called after each change
   * @returns {() => void} ends it
   */
  subscribe = (listener) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /**
   * Gives what changes the state, until another is asked for: what is still to come of what went
   * before is not shown.
   */
  setter() {
    const number = ++this.#setters;
    return (/** @type {Partial<T>} */ changes) => {
      if (number !== this.#setters) return;
      this.state = { ...this.state, ...changes };
      for (const listener of this.#listeners) invokeReportingErrors(listener, this.state);
    };
  }
}

/** @type {ConnectionState} */
const IDLE = { status: 'idle', client: undefined, error: undefined };

/**
 * A connection to an app, which reconnects by itself unless its options say otherwise.
 * @extends {Store<ConnectionState>}
 */
export class ConnectionStore extends Store {
  /** @param {ConnectOptions} options the callbacks may be replaced at any time */
  constructor(options) {
    super(IDLE);
    this.options = options;
  }

  /**
   * Connects to an app, in place of the one before.
   * @param {Target} target
   * @returns {() => void} ends it, in whatever state it is
   */
  open(target) {
    let set = this.setter();
    if (!target) {
      set(IDLE);
      return () => {};
    }
    const { options } = this;
    const { reconnect = true } = options;
    const { controller, release } = followSignal(options.signal);
    const { signal } = controller;
    const iframe = 'contentWindow' in target ? target : undefined;
    /** @type {Client | undefined} */
    let client;
    const begin = async () => {
      // That an iframe's options have its origin is for those who give them.
      client = await connect(/** @type {ConnectTarget} */ (target), {
        reconnect: true,
        ...options,
        signal,
        onNotification: (...args) => this.options.onNotification?.(...args),
        onProgress: (info) => this.options.onProgress?.(info),
        onElicitation:
          options.onElicitation && ((...args) => this.options.onElicitation?.(...args)),
        onCapabilitiesChanged: (changes) => this.options.onCapabilitiesChanged?.(changes),
        onDisconnect: (error) => {
          set({ status: options.reconnect === false ? 'failed' : 'reconnecting', error });
          this.options.onDisconnect?.(error);
        },
        onReconnect: (error) => {
          set({ status: error ? 'failed' : 'connected', error: abpError(error) });
          this.options.onReconnect?.(error);
        },
      });
      if (signal.aborted) client.close();
      else set({ status: 'connected', client, error: undefined });
    };
    // The first session may be late: the iframe is put into the document later, or its document
    // takes long, or does not load at first.
    const beginAgain = async (/** @type {unknown} */ error) => {
      const isAway = iframe && !iframe.contentWindow;
      const isFinal = error instanceof AbpError && !error.retryable;
      if (!reconnect || signal.aborted || (isFinal && !isAway)) throw error;
      set({ error: abpError(error) });
      const limit = milliseconds(options.timeout ?? 10_000);
      // What a function opens has been opened: it need not wait for its turn.
      const fixed = typeof target === 'function' ? undefined : target;
      const sinceNow = { hasFailed: true, failures: 1, since: performance.now() };
      const place = { target: fixed, iframe, limit, patience: reconnect, ...sinceNow };
      const { restore } = await import('../retry/retry.js');
      await restore(begin, signal, place, start);
    };
    const start = () => {
      set({ ...IDLE, status: 'connecting' });
      begin()
        .catch(beginAgain)
        .catch((error) => set({ status: 'failed', error: abpError(error) }));
    };
    start();
    return () => {
      release();
      controller.abort();
      client?.close();
      set(IDLE);
      set = () => {};
    };
  }
}

/**
 * Calls of one capability, one at a time: another call cancels the one before.
 * @extends {Store<CallState>}
 */
export class Call extends Store {
  /** @type {AbortController | undefined} */
  #controller;

  constructor() {
    super({ pending: false, progress: undefined, response: undefined });
  }

  /**
   * @param {Client | undefined} client
   * @param {string} name
   * @param {unknown} [params]
   * @param {CallOptions} [options]
   * @returns {Promise<Response>} of this call, whatever becomes of it
   */
  async start(client, name, params, options = {}) {
    this.cancel('A newer call replaced it');
    const { controller, release } = followSignal(options.signal);
    this.#controller = controller;
    const set = this.setter();
    set({ pending: true, progress: undefined, response: undefined });
    const { signal } = controller;
    const onProgress = (/** @type {ProgressInfo} */ progress) => {
      set({ progress });
      options.onProgress?.(progress);
    };
    /** @type {Response | undefined} */
    let response;
    try {
      response = (await client?.call(name, params, { ...options, signal, onProgress })) ?? {
        success: false,
        error: { code: 'NOT_INITIALIZED', message: NO_SESSION, retryable: true },
      };
      return response;
    } finally {
      set({ pending: false, response });
      release();
    }
  }

  /**
   * Cancels the call that is under way, if there is one.
   * @param {unknown} [reason]
   */
  cancel = (reason) => {
    if (this.state.pending) this.#controller?.abort(reason);
  };
}

const NO_SESSION = "There is no session yet: call once the connection's status is connected";

/** Why the calls of a component end that goes. */
export const UNMOUNTED = 'The component was unmounted';
