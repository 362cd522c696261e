/** The caller's side of a stream. An app reads the input of a call as a stream, too. */
import { isHighWaterMark } from '../common/check-options.js';
import { Inflow } from '../common/inflow.js';
import { badHighWaterMark } from '../common/value-size.js';
import { INPUT, failedBy } from '../wire/messages.js';
import { ENDED } from './call.js';
import { makeCall } from './made-call.js';
import { rejectionOf } from './rejection.js';

/** The error of a caller when the other side has sent more than was agreed on. */
const OVERRUN = "The other side sent more than the stream's window allows, so the stream was ended";

/**
 * A call whose result is read while it is made: `for await (const chunk of client.stream(…))`.
 * Unread chunks wait here, within the limits `streamChunks` and `streamBytes`; when these are
 * reached, the app waits. If the call fails, `next` rejects with an AbpError, whose name is
 * `AbortError` if the call was cancelled. `return` cancels the call if it still runs. `response`
 * has the outcome.
 * @template [T=any] its chunks
 * @template [Answer=any] its response
 * @extends {Inflow<T>}
 */
export class CallStream extends Inflow {
  /** The call. @type {import('./call.js').Call | undefined} */
  #pending;

  /** @param {(stream: CallStream) => Promise<Answer>} begin makes the call */
  constructor(begin) {
    super();
    /**
     * The protocol's response, as for a call: its data is the return value of the app's generator.
     * It does not reject when the call fails, whether the chunks are read or not.
     * @type {Promise<Answer>}
     */
    this.response = begin(this);
    this.response.then(
      (/** @type {any} */ response) => {
        const { success, data, metadata } = response;
        // An app that sends no chunks to this side has collected them.
        const collected = success && metadata?.collected === true && Array.isArray(data);
        for (const chunk of collected ? data : []) this.push(chunk, 0);
        const signal = this.#pending?.callerSignal;
        this.#pending = undefined;
        this.finish(() => {
          if (!success) throw rejectionOf(response, signal);
          return { done: true, value: collected ? undefined : data };
        });
      },
      (error) =>
        this.finish(() => {
          throw error;
        }),
    );
  }

  /**
   * @internal
   * @param {import('./call.js').Call} pending the call, as soon as it is made
   */
  attach(pending) {
    this.#pending = pending;
  }

  /** @internal The response of a call whose other side has sent too much. */
  get overrun() {
    return failedBy(OVERRUN);
  }

  /**
   * @override
   * @protected
   * @param {number} size
   */
  onRead(size) {
    const call = this.#pending;
    call?.feed(call.endpoint.core.x.chunk_read, size);
  }

  /**
   * @override
   * @protected
   */
  onLeave() {
    const { endpoint, handle } = this.#pending ?? {};
    endpoint?.cancel(/** @type {any} */ (handle), 'The reader stopped reading the stream');
  }
}

/**
 * The input of a call, which an agent streams to the handler. It is requested when the first chunk
 * is read. Once the call is cancelled nothing more is read, not even chunks that had arrived.
 */
export class InputStream extends CallStream {
  #call;
  /** Requests the input. @type {undefined | ((asked: Promise<unknown>) => void)} */
  #ask;

  /** @param {import('./call.js').Call} call */
  constructor(call) {
    /** @type {undefined | ((asked: Promise<unknown>) => void)} */
    let ask;
    super(() => new Promise((resolve) => (ask = resolve)));
    this.#call = call;
    this.#ask = ask;
  }

  /** @override */
  async next() {
    const { aborted, signal, endpoint, callId, handle, extra } = this.#call;
    if (aborted) throw signal.reason;
    // `input` may be a promise of this stream.
    const highWaterMark = extra.input?.highWaterMark;
    if (!isHighWaterMark(highWaterMark)) throw badHighWaterMark();
    const options = { stream: this, highWaterMark };
    this.#ask?.(makeCall(endpoint, INPUT, { callId }, options, handle || ENDED));
    this.#ask = undefined;
    try {
      return await super.next();
    } catch (error) {
      throw this.#call.aborted ? signal.reason : error;
    }
  }
}
