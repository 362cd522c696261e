/** Gives the core what the other side says, one input for each message or entry of a frame. */
import * as abp from '../driver/abp-boundary.js';
import { invokeReportingErrors, toErrorObject } from '../common/errors.js';
import { isObject } from '../common/values.js';
import { OUTCOME } from '../wire/messages.js';
import { readMessage } from '../wire/reader.js';
import { CHUNK, RECEIVED, RECORD } from './records.js';

/** @import { Taker } from '../wire/reader.js' */

/** Of a call that is no stream. @type {[number, number]} */
const NO_WINDOW = [0, 0];

/**
 * A key as the core takes it.
 * @param {unknown} key
 * @returns {abp.CallNumber} 0 if it is not a call's number
 */
const numberOf = (key) =>
  typeof key === 'number' && Number.isInteger(key) && key > 0 && key < 2 ** 32
    ? /** @type {abp.CallNumber} */ (key)
    : 0;

/** A call that is refused because what runs it did not load. */
class Unloaded {
  [RECORD] = RECEIVED;

  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {import('../wire/messages.js').Request} request
   * @param {unknown} message
   */
  constructor(endpoint, request, message) {
    this.request = request;
    this.message = message;
    this.refuse = () =>
      endpoint.writer.respond(
        this,
        endpoint.incoming.became(
          { success: false, error: toErrorObject(endpoint.unloaded) },
          abp.FATE_UNSTARTED,
        ),
      );
  }
}

/** @implements {Taker<void>} */
export class Intake {
  #endpoint;
  #core;
  #machine;

  /** @param {import('./endpoint.js').Endpoint} endpoint */
  constructor(endpoint) {
    this.#endpoint = endpoint;
    this.#core = endpoint.core;
    this.#machine = endpoint.machine;
  }

  /** @param {import('../wire/messages.js').Request} request @param {unknown} [message] */
  request(request, message) {
    const endpoint = this.#endpoint;
    const { callee, unloaded } = endpoint;
    if (!endpoint.Invocation && !unloaded) {
      return void endpoint.loadInvocation(() => this.request(request, message));
    }
    const { key, name, timeout, progress, window, about } = request;
    let flags = progress === false ? 0 : abp.WANTS_PROGRESS;
    const [chunks, bytes] = window ?? NO_WINDOW;
    let rejection = abp.INVALID_PARAMS;
    if (unloaded) rejection = abp.INTERNAL_ERROR;
    else if (name === OUTCOME && endpoint.side.recall && endpoint.has(abp.OUTCOMES)) {
      flags = abp.ASIDE;
      rejection = abp.NO_ERROR;
    } else if (typeof name === 'string') rejection = callee.rejectionFor(request);
    this.#machine.feed(
      (x, pointer) => {
        const length = this.#core.writeId(key);
        const number = numberOf(key);
        const more = this.#core.writeReason(about, length);
        return x.call_received(
          pointer,
          length,
          number,
          timeout,
          flags,
          chunks,
          bytes,
          rejection,
          more,
        );
      },
      endpoint.Invocation
        ? new endpoint.Invocation(endpoint, request, message)
        : new Unloaded(endpoint, request, message),
    );
  }

  /** @param {unknown} key @param {abp.Outcome} outcome @param {unknown} response */
  response(key, outcome, response) {
    this.#machine.feed(
      (x, pointer) => x.result_received(pointer, this.#core.writeId(key), numberOf(key), outcome),
      response,
    );
  }

  /** @param {unknown} key @param {unknown} info */
  progress(key, info) {
    this.#machine.feed(
      (x, pointer) => x.progress_received(pointer, this.#core.writeId(key), numberOf(key)),
      info,
    );
  }

  /** @param {unknown} key @param {unknown} reason */
  cancel(key, reason) {
    this.#machine.feed((x, pointer) => {
      const length = this.#core.writeId(key);
      const reasonLength = this.#core.writeReason(reason, length);
      return x.cancel_received(pointer, length, numberOf(key), reasonLength);
    });
  }

  /** @param {unknown} key @param {number} size @param {unknown} value */
  chunk(key, size, value) {
    const seen = this.#endpoint.measure?.(value) ?? 0;
    this.#machine.feed(
      (x, pointer) => x.chunk_received(pointer, this.#core.writeId(key), numberOf(key), size, seen),
      { value, [RECORD]: CHUNK },
    );
  }

  /** @param {unknown} key @param {[number, number]} amount */
  credit(key, [chunks, bytes]) {
    this.#machine.feed((x, pointer) =>
      x.credit_received(pointer, this.#core.writeId(key), numberOf(key), chunks, bytes),
    );
  }

  /** @param {unknown} event @param {unknown} data */
  notification(event, data) {
    const { side } = this.#endpoint;
    if (typeof event === 'string' && this.#endpoint.has(abp.NOTIFICATIONS)) {
      invokeReportingErrors(side.onNotification, event, data);
    }
  }

  /** @param {unknown} message */
  message(message) {
    if (isObject(message)) readMessage(message, this.#endpoint.role === abp.APP, this);
    else this.malformed();
  }

  /** Messages outside of the data plane are read by the core. @param {unknown} message */
  control(message) {
    this.#endpoint.noteControl(message);
    this.#machine.feed(
      (x, pointer) => x.receive(pointer, this.#core.writeControl(message)),
      message,
    );
  }

  malformed() {
    this.#machine.feed((x, pointer) => x.receive(pointer, 0));
  }
}
