/**
 * What the entries for frameworks share: a connection and a call as stores, whose state is replaced when it changes. A
 * component shows the state, and ends what it began when it goes.
 */
import { connect } from '../agent/client.js';
import { AbpError, invokeReportingErrors } from '../common/errors.js';
import { offAbort, onAbort } from '../common/signals.js';

/** @import { CallOptions, Client, ConnectOptions, ConnectTarget, Opener, ProgressInfo, Response } from '../agent/client.js' */

/**
 * Where the app is: what `connect` takes, or nothing while it is not there yet.
 * @typedef {HTMLIFrameElement | ConnectTarget | Opener | null | undefined} Target
 */

/**
 * @typedef {object} ConnectionState
 * @property {'idle' | 'connecting' | 'connected' | 'reconnecting' | 'failed'} status `idle`: there is no target;
 *   `failed`: nothing more is tried
 * @property {Client | undefined} client from the first session on
 * @property {unknown} error why it is not connected, if that is known
 */

/**
 * @typedef {object} CallState
 * @property {boolean} pending whether a call is under way
 * @property {ProgressInfo | undefined} progress of the last call
 * @property {Response | undefined} response of the last call, once it has settled
 */

/** @template T */
class Store {
  /** @type {Set<(state: T) => void>} */
  #listeners = new Set();

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

  /** @param {Partial<T>} changes */
  set(changes) {
    this.state = { ...this.state, ...changes };
    for (const listener of this.#listeners) invokeReportingErrors(listener, this.state);
  }
}

/** @type {ConnectionState} */
const IDLE = { status: 'idle', client: undefined, error: undefined };

/** A connection to an app, which reconnects by itself unless its options say otherwise. @extends {Store<ConnectionState>} */
export class Connection extends Store {
  /** The options; the callbacks may be replaced at any time. @type {ConnectOptions} */
  options;
  #serial = 0;

  /** @param {ConnectOptions} options */
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
    const serial = ++this.#serial;
    /** @param {Partial<ConnectionState>} changes */
    const set = (changes) => serial === this.#serial && this.set(changes);
    if (!target) {
      set(IDLE);
      return () => {};
    }
    const { options } = this;
    const controller = new AbortController();
    const abort = { handleEvent: () => controller.abort(options.signal?.reason) };
    onAbort(options.signal, abort);
    if (options.signal?.aborted) abort.handleEvent();
    /** @type {Client | undefined} */
    let client;
    set({ ...IDLE, status: 'connecting' });
    connect(target, {
      reconnect: true,
      ...options,
      signal: controller.signal,
      onNotification: (...args) => this.options.onNotification?.(...args),
      onProgress: (info) => this.options.onProgress?.(info),
      onElicitation: options.onElicitation && ((...args) => this.options.onElicitation?.(...args)),
      onCapabilitiesChanged: (changes) => this.options.onCapabilitiesChanged?.(changes),
      onDisconnect: (error) => {
        set({ status: options.reconnect === false ? 'failed' : 'reconnecting', error });
        this.options.onDisconnect?.(error);
      },
      onReconnect: (error) => {
        set({ status: error ? 'failed' : 'connected', error });
        this.options.onReconnect?.(error);
      },
    }).then(
      (connected) => {
        client = connected;
        if (controller.signal.aborted) client.close();
        else set({ status: 'connected', client, error: undefined });
      },
      (error) => set({ status: 'failed', error }),
    );
    return () => {
      offAbort(options.signal, abort);
      controller.abort();
      client?.close();
      set(IDLE);
      // What is still to come of it is not shown.
      if (serial === this.#serial) this.#serial++;
    };
  }
}

/** Calls of one capability, one at a time: another call cancels the one before. @extends {Store<CallState>} */
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
    this.cancel('Another call was made in its place');
    const controller = (this.#controller = new AbortController());
    /** @param {Partial<CallState>} changes */
    const set = (changes) => this.#controller === controller && this.set(changes);
    const { signal } = options;
    const abort = { handleEvent: () => controller.abort(signal?.reason) };
    onAbort(signal, abort);
    if (signal?.aborted) abort.handleEvent();
    set({ pending: true, progress: undefined, response: undefined });
    /** @type {Response} */
    let response;
    try {
      response = await (client?.call(name, params, {
        ...options,
        signal: controller.signal,
        onProgress: (progress) => {
          set({ progress });
          options.onProgress?.(progress);
        },
      }) ?? { success: false, error: { ...NOT_CONNECTED } });
    } catch (error) {
      set({ pending: false });
      throw error;
    } finally {
      offAbort(signal, abort);
    }
    set({ pending: false, response });
    return response;
  }

  /**
   * Cancels the call that is under way, if there is one.
   * @param {unknown} [reason]
   */
  cancel = (reason) => {
    if (this.state.pending) this.#controller?.abort(reason);
  };
}

const { code, message, retryable } = new AbpError(
  'NOT_INITIALIZED',
  'There is no session yet: call when the status of the connection is connected',
  { retryable: true },
);
const NOT_CONNECTED = { code, message, retryable };

/** Why the calls of a component end that goes. */
export const UNMOUNTED = 'Its component has gone';
