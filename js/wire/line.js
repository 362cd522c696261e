/**
 * Lines: sending to the other side and reading from it, in messages of the published protocol or,
 * if both sides agreed on them, in frames. A session keeps its line from its beginning to its end.
 */
import * as abp from '../driver/abp-boundary.js';
import { outOfMemory } from '../driver/core.js';
import { reasonText } from '../common/errors.js';
import { shapeOf } from '../common/snapshot.js';
import { EMPTY, firstOf, getOwn, milliseconds } from '../common/values.js';
import * as FrameKind from './frame-kinds.js';
import { FrameWriter, entriesOf, isFrame } from './frames.js';
import { failedBy } from './messages.js';
import { callMessage, readOrdinary, responseMessage } from './ordinary.js';
import { reasonUnsent, warnUnsent } from './unsent.js';

/** @import { Amount, Call, Endpoint, Line, MadeCall, MessageKind, Sink } from '../types/line.js' */

/**
 * Reads an amount of a stream from a peer.
 * @param {unknown} value
 * @returns {number} -1, for the core, if it is not a number
 */
const countOf = (value) => (typeof value === 'number' ? value : -1);

/**
 * A key of a frame as the core takes it.
 * @param {unknown} key
 * @returns {abp.CallNumber} 0 if it is not a call's number
 */
export const numberOf = (key) =>
  typeof key === 'number' && key >>> 0 === key ? /** @type {abp.CallNumber} */ (key) : 0;

/**
 * Sends each message by itself.
 * @implements {Line}
 */
export class MessageLine {
  /** Collects frames; only in a `FrameLine`. @type {FrameWriter | undefined} */
  writer = undefined;

  /** @param {Endpoint} endpoint its owner */
  constructor(endpoint) {
    this.endpoint = endpoint;
  }

  /**
   * Sends a call or a question.
   * @param {MadeCall} call
   * @param {Amount} [window] of its stream
   */
  request(call, window) {
    const { core, role } = this.endpoint;
    const { name, params, options, handle } = call;
    const message =
      role === abp.AGENT && isOrdinary(call, window)
        ? callMessage(options.callId ?? core.idText(handle), name, params)
        : core.print(
            {
              ...options,
              name,
              progress: options.progressToken,
              value: params,
            },
            abp.REQUEST,
            handle,
            window,
          );
    const failed = (/** @type {unknown} */ error) => call.unsent(error);
    if (!message) return failed(outOfMemory());
    return this.#say(message, failed, options.transfer, 'request');
  }

  /**
   * Answers a call that was received.
   * @param {Call} call
   * @param {any} response
   * @param {Transferable[]} [transfer]
   */
  respond(call, response, transfer) {
    const message = responseMessage(this.endpoint.role, call.options.id, response);
    const failed = (/** @type {unknown} */ error) => {
      // Try again without the transfer list, the likely cause.
      if (transfer?.length) this.respond(call, response);
      else void this.respondUnsent(response, error, (payload) => ({ ...message, payload }));
    };
    this.#say(message, failed, transfer);
  }

  /**
   * The text of a cancel, read when the core says to stop the call.
   * @param {Call} _call
   * @returns {unknown} for `cancel`
   */
  cancelText(_call) {
    return this.endpoint.core.message;
  }

  /**
   * Sends a cancel for a call.
   * @param {Call} _call
   * @param {any} text what `cancelText` returned
   */
  cancel(_call, text) {
    this.control(text);
  }

  /**
   * Sends the progress of a call.
   * @param {object} info
   * @param {unknown} token names the call; true is its id
   * @param {Call} [call] absent if the progress belongs to no call here
   */
  progress(info, token, call) {
    const isById = call && token === true;
    const content = { progress: isById ? undefined : token };
    const message = this.endpoint.core.print(content, abp.REPORT, call?.handle);
    if (message)
      this.control({ ...message, payload: { ...info, ...message.payload } }, 'droppable');
  }

  /**
   * Sends a chunk of a stream.
   * @param {Call} call
   * @param {unknown} chunk
   * @param {number} size in bytes
   * @param {Transferable[]} [transfer]
   */
  chunk(call, chunk, size, transfer) {
    const { core } = this.endpoint;
    const message = core.print({ value: chunk }, abp.CHUNK, call.handle, [0, size]);
    if (message) this.#say(message, (error) => call.extra.outflow?.fail(error), transfer);
  }

  /**
   * Reports how much of a stream was read.
   * @param {Call} call
   * @param {Amount} amount
   */
  credit(call, amount) {
    this.control(this.endpoint.core.print({}, abp.CREDIT, call.handle, amount));
  }

  /**
   * Sends a message that the core has printed.
   * @param {any} message undefined if there is no message to send any more
   * @param {MessageKind} [kind]
   * @param {boolean} [_canWait] whether it may wait for the end of the turn
   */
  control(message, kind, _canWait) {
    if (message) this.#say(message, undefined, undefined, kind);
  }

  /**
   * Reads received data.
   * @param {unknown} data
   * @param {Sink} sink passes it to the core
   */
  receive(data, sink) {
    if (Array.isArray(data) || typeof data === 'string')
      return isFrame(data) ? sink.unread() : sink.message(undefined);
    return this.readMessage(data, sink);
  }

  /**
   * @protected
   * @param {unknown} message
   * @param {Sink} sink
   */
  readMessage(message, sink) {
    // The core need not read the messages of an ordinary call.
    const read = readOrdinary(sink.role, message);
    if (!read) return sink.message(message);
    const { id, payload, callId, name } = read;
    const { core } = sink;
    if (callId === undefined)
      return void sink.feed(core.x.value_received, { payload }, core.writeId(id), 0);
    const options = { id, timeout: milliseconds(read.timeout) };
    return sink.called(callId, name, getOwn(payload, 'params'), options);
  }

  /** Sends the collected messages. */
  flush() {}

  /**
   * @param {any} message
   * @param {(error: unknown) => unknown} [failed] called if it cannot be sent; without it the
   *   console shows the error
   * @param {Transferable[]} [transfer]
   * @param {MessageKind} [kind]
   */
  #say(message, failed, transfer, kind) {
    try {
      shapeOf(message.payload); // It throws where it is too deep.
      this.endpoint.post(message, transfer, kind);
    } catch (error) {
      if (failed) failed(error);
      else warnUnsent(error, message.payload);
    }
  }

  /**
   * Answers with the reason when an answer could not be sent. An answer whose id or key cannot be
   * cloned is lost: the other side could not match it.
   * @protected
   * @param {any} unsent the response
   * @param {unknown} error
   * @param {(response: object) => unknown} wrap makes a message of it
   */
  async respondUnsent({ success, data, metadata }, error, wrap) {
    const { endpoint } = this;
    // The handler has run to its end, although its data cannot be sent. An answer to a question has
    // no outcome.
    const done = endpoint.role === abp.APP ? abp.FATES[abp.FATE_FINISHED] : undefined;
    const outcome = success ? done : metadata?.outcome;
    const response = failedBy(await reasonUnsent('result', 'data', data, error), outcome);
    // In a session that began meanwhile, the key belongs to another call.
    if (endpoint.line !== this) return;
    try {
      endpoint.post(wrap(response));
    } catch (failure) {
      warnUnsent(failure, response);
    }
  }
}

/** Sends the messages as entries of frames, which js/wire/frame-kinds.js describes. */
export class FrameLine extends MessageLine {
  /** True if the other side reads outcomes of calls as numbers. */
  #sendsOutcomes;

  /** @param {Endpoint} endpoint its owner */
  constructor(endpoint) {
    super(endpoint);
    this.writer = new FrameWriter(
      endpoint,
      (entry, transfer, error) => this.#undeliverable(entry, transfer, error),
      endpoint.has(abp.TEXT),
    );
    this.#sendsOutcomes = endpoint.has(abp.OUTCOMES);
  }

  /**
   * @override
   * @param {MadeCall} call
   * @param {Amount} [window]
   */
  request(call, window) {
    const { name, params, options, key } = call;
    if (options === EMPTY || isOrdinary(call, window))
      return this.writer.add(FrameKind.REQUEST, key, name, params, options.transfer);
    const progress = options.progressToken ?? (options.onProgress ? true : false);
    const more = [
      params,
      milliseconds(options.timeout),
      progress,
      ...(window ?? [0, 0]),
      options.about ?? !!options.input,
      options.idempotencyKey,
    ];
    while (more.length > 3 && !more.at(-1)) more.pop();
    return this.writer.add(FrameKind.REQUEST_WITH, key, name, more, options.transfer);
  }

  /**
   * @override
   * @param {Call} call
   * @param {any} response
   * @param {Transferable[]} [transfer]
   */
  respond(call, response, transfer) {
    const { key } = call;
    if (key === undefined) return super.respond(call, response, transfer);
    const { success, data, metadata } = response;
    // Most successes have only a duration as metadata.
    if (success && metadata && Object.keys(metadata).length === 1)
      return this.writer.add(FrameKind.VALUE, key, metadata.duration, data, transfer);
    const { core } = this.endpoint;
    const outcome = this.#sendsOutcomes && core.packFailure(response);
    if (outcome) return this.writer.add(FrameKind.OUTCOME, key, ...outcome);
    return this.writer.add(FrameKind.RESPONSE, key, undefined, response, transfer);
  }

  /**
   * @override
   * @param {Call} call
   * @returns {string | undefined} the reason
   */
  cancelText(call) {
    return call.reason ?? this.endpoint.core.reason;
  }

  /**
   * @override
   * @param {Call} call
   * @param {string | undefined} reason
   */
  cancel(call, reason) {
    this.writer.add(FrameKind.CANCEL, call.key, reason, undefined);
  }

  /**
   * @override
   * @param {object} info
   * @param {unknown} token
   * @param {Call} [call]
   */
  progress(info, token, call) {
    const key = token === true && call?.key;
    if (typeof key === 'number') this.writer.add(FrameKind.PROGRESS, key, undefined, info);
    else super.progress(info, token, call);
  }

  /**
   * @override
   * @param {Call} call
   * @param {unknown} chunk
   * @param {number} size
   * @param {Transferable[]} [transfer]
   */
  chunk(call, chunk, size, transfer) {
    if (call.key === undefined) return super.chunk(call, chunk, size, transfer);
    return this.writer.add(FrameKind.CHUNK, call.key, size, chunk, transfer);
  }

  /**
   * @override
   * @param {Call} call
   * @param {Amount} amount
   */
  credit(call, amount) {
    if (call.key) this.writer.add(FrameKind.CREDIT, call.key, ...amount);
    else super.credit(call, amount);
  }

  /**
   * @override
   * @param {any} message
   * @param {MessageKind} [_kind]
   * @param {boolean} [canWait]
   */
  control(message, _kind, canWait) {
    if (!message) return;
    if (canWait) this.writer.addLater(message);
    else this.writer.add(FrameKind.MESSAGE, 0, undefined, message);
  }

  /**
   * @override
   * @param {unknown} data
   * @param {Sink} sink
   */
  receive(data, sink) {
    const entries = entriesOf(data);
    if (!entries) return super.receive(data, sink);
    for (let i = 0; i < entries.length && !sink.over; i += 4)
      this.#read(sink, entries[i], entries[i + 1], entries[i + 2], entries[i + 3]);
  }

  /** @override */
  flush() {
    this.writer.flush();
  }

  /**
   * Reads an entry.
   * @param {Sink} sink
   * @param {unknown} kind
   * @param {any} key
   * @param {any} a
   * @param {any} b
   * @returns {unknown}
   */
  #read(sink, kind, key, a, b) {
    if (kind === FrameKind.REQUEST) return sink.called(key, a, b, undefined, key);
    const { core } = sink;
    const number = numberOf(key);
    const length = number ? 0 : core.writeId(key);
    if (kind !== FrameKind.VALUE) return this.#readOther(sink, kind, key, a, b, length, number);
    const payload = { success: true, data: b, metadata: { duration: a } };
    return sink.feed(core.x.value_received, { payload }, length, number);
  }

  /**
   * Reads an entry other than a call or a success.
   * @param {Sink} sink
   * @param {unknown} kind
   * @param {any} key
   * @param {any} a
   * @param {any} b
   * @param {number} length of the key in the scratch
   * @param {abp.CallNumber} number the key, if it is a number
   * @returns {unknown}
   */
  #readOther(sink, kind, key, a, b, length, number) {
    const { core } = sink;
    const { x } = core;
    switch (kind) {
      case FrameKind.OUTCOME: {
        const payload = core.unpackFailure(a, b);
        const packed = /** @type {abp.Response} */ (payload ? a | abp.RESPONSE_PACKED : 0);
        return sink.feed(x.outcome_received, { payload, packed }, length, number, packed);
      }
      case FrameKind.RESPONSE: {
        const packed = core.packResponse(b ?? null);
        return sink.feed(x.outcome_received, { payload: b, packed }, length, number, packed);
      }
      case FrameKind.CANCEL: {
        sink.late?.();
        const text = core.writeReason(a, length);
        // As the core reads it.
        const cancelReason = text ? reasonText(a)?.replace(/\p{Surrogate}/gu, '\ufffd') : undefined;
        return sink.feed(x.cancel_received, { cancelReason }, length, number, text);
      }
      case FrameKind.PROGRESS:
        return sink.feed(x.progress_received, { payload: b }, length, number);
      case FrameKind.CHUNK: {
        // The limit of windows. Without a stream, no call takes the chunk.
        const size = Math.min(sink.streams?.sizeOf(b) ?? 0, 2 ** 32 - 1);
        const context = { payload: { chunk: b }, isChunk: true };
        return sink.feed(x.chunk_received, context, length, number, countOf(a), size);
      }
      case FrameKind.CREDIT:
        return sink.feed(x.credit_received, undefined, length, number, countOf(a), countOf(b));
      case FrameKind.TEXT:
        return this.receive(String(b), sink);
      case FrameKind.REQUEST_WITH: {
        const [params, timeout, wants, chunks, bytes, last, idempotencyKey] = firstOf(b, 7);
        const options = {
          timeout: milliseconds(timeout),
          progress: wants === false ? undefined : (wants ?? undefined),
          input: sink.role === abp.AGENT ? !!chunks : last === true,
          about: last,
          idempotencyKey,
        };
        return sink.called(key, a, params, options, key, countOf(chunks), countOf(bytes));
      }
    }
    return this.readMessage(kind === FrameKind.MESSAGE ? b : undefined, sink);
  }

  /**
   * Handles an entry that could not be sent.
   * @param {unknown[]} entry
   * @param {Transferable[] | undefined} transfer
   * @param {unknown} error
   * @returns {unknown}
   */
  #undeliverable([kind, key, a, value], transfer, error) {
    const isRequest = kind === FrameKind.REQUEST;
    const isMade = isRequest || kind === FrameKind.REQUEST_WITH;
    // Calls of the two sides may have the same key.
    const call = /** @type {MadeCall | undefined} */ (
      this.endpoint.find((record) => record.key === key && isMade === !!record.resolve)
    );
    if (isMade) return call?.unsent(error, isRequest ? value : getOwn(value, '0'));
    if (kind === FrameKind.CHUNK) return call?.extra.outflow?.fail(error);
    const isAnswer = [FrameKind.VALUE, FrameKind.RESPONSE, FrameKind.OUTCOME].includes(
      /** @type {number} */ (kind),
    );
    if (!isAnswer) return warnUnsent(error, getOwn(value, 'payload') ?? value);
    // Try again, without the transfer list, which may be the cause.
    if (transfer?.length) return this.writer.add(/** @type {number} */ (kind), key, a, value);
    /** @type {any} */
    const unsent =
      kind === FrameKind.VALUE
        ? { success: true, data: value }
        : kind === FrameKind.OUTCOME
          ? this.endpoint.core.unpackFailure(a, value)
          : value;
    const wrap = (/** @type {object} */ response) => [FrameKind.RESPONSE, key, undefined, response];
    return this.respondUnsent(unsent, error, wrap);
  }
}

/**
 * True if a call has only a name and params.
 * @param {Call} call
 * @param {Amount} [window] of its stream
 */
const isOrdinary = ({ options }, window) =>
  !options.onProgress &&
  options.progressToken === undefined &&
  !options.timeout &&
  !window?.[0] &&
  !options.about &&
  !options.input &&
  !options.idempotencyKey;
