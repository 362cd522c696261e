/**
 * The common part of the entries for frameworks: a connection and a call as stores, whose state is
 * replaced when it changes. A component shows the state, and ends its connection and calls when it
 * is unmounted.
 *
 * Each entry (React, Vue, Svelte) only adapts these two stores to its framework. `connect` and
 * parts/retry/retry.js begin sessions again, and the client reports how a call ended.
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
 * @typedef {HTMLIFrameElement | ConnectTarget | Opener | null | undefined} Target A target of
 *   `connect`; null or undefined while there is none yet.
 */

/**
 * @template [App=any] the type of the app; see `connect`
 * @typedef {object} ConnectionState The state of a connection, for a component.
 * @property {'idle' | 'connecting' | 'connected' | 'reconnecting' | 'failed'} status `idle`: there
 *   is no target; `failed`: there are no more attempts, unless the iframe loads a document again
 * @property {Client<App> | undefined} client set from the first session on
 * @property {AbpError | undefined} error the reason why it is not connected, if known
 */

/**
 * @template [App=any] the type of the app
 * @template {NameOf<App>} [Name=NameOf<App>] the capability
 * @typedef {object} CallState The state of a call, for a component.
 * @property {boolean} pending whether a call is pending
 * @property {ProgressInfo | undefined} progress of the last call
 * @property {ResponseOf<App, Name> | undefined} response of the last call, once it has settled
 */

/**
 * Functions that make and cancel a call of one capability.
 * @template App
 * @template {NameOf<App>} Name
 * @typedef {object} Calling
 * @property {(...rest: CallArguments<App, Name>) => Promise<ResponseOf<App, Name>>} call makes a
 *   call with these params and options
 * @property {(reason?: unknown) => void} cancel cancels the pending call
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

  /** The state: a new object after each change. */
  get = () => this.state;

  /**
   * @param {(state: T) => void} listener called after each change
   * @returns {() => void} removes the listener
   */
  subscribe = (listener) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /**
   * Makes a function that changes the state. It stops working when the next one is made, so that
   * later events of the previous connection or call do not change the state.
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
 * A connection to an app, which reconnects automatically unless its options disable that.
 * @extends {Store<ConnectionState>}
 */
export class ConnectionStore extends Store {
  /** @param {ConnectOptions} options the callbacks may be replaced at any time */
  constructor(options) {
    super(IDLE);
    this.options = options;
  }

  /**
   * Connects to an app. From now on the state is that of this connection.
   * @param {Target} target
   * @returns {() => void} closes the connection, in any state
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
      // The types require an iframe's origin where the options are passed.
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
    // The first session may be late: the iframe may be added to the document later, or its document
    // may load slowly, or not at first.
    const beginAgain = async (/** @type {unknown} */ error) => {
      const isAway = iframe && !iframe.contentWindow;
      const isFinal = error instanceof AbpError && !error.retryable;
      if (!reconnect || signal.aborted || (isFinal && !isAway)) throw error;
      set({ error: abpError(error) });
      const limit = milliseconds(options.timeout ?? 10_000);
      // A function has already opened a transport, so there is no need for a random first delay.
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
 * Calls of one capability, one at a time: each call cancels the one before.
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
   * @returns {Promise<Response>} the response of this call, even if another call replaces it
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
   * Cancels the pending call, if there is one.
   * @param {unknown} [reason]
   */
  cancel = (reason) => {
    if (this.state.pending) this.#controller?.abort(reason);
  };
}

const NO_SESSION = "There is no session yet: call once the connection's status is connected";

/** The cancel reason for calls of a component that is unmounted. */
export const UNMOUNTED = 'The component was unmounted';
