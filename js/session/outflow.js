/** The stream of a handler: a chunk is sent when the window has room for it. Until then the handler waits. */
import * as abp from '../core/abp-boundary.js';
import { breathe } from '../common/breathe.js';
import { AbpError, toErrorObject } from '../common/errors.js';
import { sizeOf } from './chunk-size.js';

/** At most so many bytes are collected for a caller that reads no chunks. Each chunk counts as at least 64. */
const MAX_COLLECTED = 2 ** 26;

/**
 * The iterator of an async iterable or of a `ReadableStream`, which not every browser can iterate.
 * @param {any} source
 * @returns {{ next(): Promise<IteratorResult<any>>, return?(reason?: unknown): unknown }}
 */
function iteratorOf(source) {
  if (typeof source.getReader !== 'function') return source[Symbol.asyncIterator]();
  const reader = source.getReader();
  return { next: () => reader.read(), return: (reason) => reader.cancel(reason) };
}

export class Outflow {
  #endpoint;
  #invocation;
  #iterator;
  /** Whether the handler was told to stop. */
  #stopped = false;
  /** Settles when the handler's iterator has ended, once it was told to. @type {Promise<unknown> | undefined} */
  #closing;
  /** Tries the waiting chunk again. @type {undefined | (() => void)} */
  #retry;
  /** Why a chunk could not be sent. @type {AbpError | undefined} */
  #broken;

  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {import('./invocation.js').Invocation} invocation the call
   * @param {any} source what its handler returned
   */
  constructor(endpoint, invocation, source) {
    this.#endpoint = endpoint;
    this.#invocation = invocation;
    this.#iterator = iteratorOf(source);
  }

  /**
   * Streams everything.
   * @returns {Promise<{ data: any, collected: boolean }>} the data of the result: what the handler returned or, if that is
   *   nothing and the caller reads no chunks, a list of them
   */
  async run() {
    /** @type {any[] | undefined} */
    const collected = this.#endpoint.isStream(this.#invocation) ? undefined : [];
    let left = MAX_COLLECTED;
    try {
      if (this.#invocation.aborted) this.stop();
      for (;;) {
        const { done, value } = await this.#iterator.next();
        if (this.#stopped) break;
        if (done) {
          // What cannot be sent is known now, before the call has an outcome.
          this.#endpoint.flush();
          this.#requireWhole();
          const all = collected !== undefined && value === undefined;
          return { data: all ? collected : value, collected: all };
        }
        if (!collected) await this.#send(value);
        else {
          if ((left -= Math.max(64, sizeOf(value))) < 0) throw tooMuch();
          collected.push(value);
          await breathe();
        }
        if (this.#stopped) break;
      }
    } catch (error) {
      this.#close(error);
      await this.#closing;
      throw error;
    }
    // The handler's own end is part of it.
    await this.#closing;
    return { data: undefined, collected: false };
  }

  /** @param {any} value */
  async #send(value) {
    const { prepare } = this.#endpoint.transport;
    const chunk = prepare ? await prepare(value, this.#invocation) : value;
    const size = sizeOf(chunk);
    while (!this.#stopped) {
      if (this.#endpoint.offerChunk(this.#invocation, chunk, size) !== abp.E_LIMIT) break;
      await new Promise((resolve) => (this.#retry = () => resolve(undefined)));
    }
    this.#requireWhole();
  }

  #requireWhole() {
    if (this.#broken) throw this.#broken;
  }

  /** There is room again. */
  resume() {
    this.#retry?.();
    this.#retry = undefined;
  }

  /** A chunk could not be sent. @param {unknown} error */
  fail(error) {
    const why = `A chunk cannot be sent: ${toErrorObject(error).message}`;
    this.#broken ??= new AbpError(
      'OPERATION_FAILED',
      `${why} (docs/errors.md#what-cannot-be-sent)`,
    );
    this.resume();
  }

  /** Nobody waits for chunks any more: the handler ends where it waits. @param {unknown} [reason] */
  stop(reason) {
    this.#stopped = true;
    this.#close(reason);
    this.resume();
  }

  /** Lets the handler's `finally` run. @param {unknown} [reason] */
  #close(reason) {
    this.#closing ??= Promise.resolve()
      .then(() => this.#iterator.return?.(reason))
      // The call has its outcome, or its error.
      .catch((error) => console.error('abp-bridge: a stream failed while it ended:', error));
  }
}

const tooMuch = () =>
  new AbpError(
    'OPERATION_FAILED',
    `More was streamed than can be collected for a caller that reads no stream: ${MAX_COLLECTED} bytes`,
  );
