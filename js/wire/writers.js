/** Write what this side says: each thing as a message of its own, or as an entry of a frame. Both say the same. */
import { snapshot } from '../common/snapshot.js';
import { getOwn } from '../common/values.js';
import * as FrameKind from './frame-kinds.js';
import { FrameWriter } from './frames.js';
import { progressMessage } from './messages.js';
import { reasonUnsent, warnUnsent } from './unsent.js';

/** @import * as abp from '../driver/abp-boundary.js' */
/** @import { MessageKind, Request } from './messages.js' */

/**
 * A call that is made here.
 * @typedef {object} Made
 * @property {abp.Handle} handle of the call in the core
 * @property {string} id
 * @property {string | number} key its key in frames; 0 if it was sent in a message
 * @property {string | undefined} callId that its caller chose
 * @property {string} name
 * @property {unknown} params
 * @property {number} timeout
 * @property {boolean | string | number} progress whether progress is wanted, or its token
 * @property {Transferable[]} [transfer]
 * @property {[number, number]} [window] of a stream: chunks and bytes
 * @property {unknown} [input] what is streamed to its handler
 * @property {string} [idempotencyKey] repeats of the call have the same one
 * @property {string} [about] of a question: the callId of the agent's call on whose behalf it is asked; of a call: that of the one it
 *   repeats
 * @property {(error: unknown) => void} unsent it could not be sent
 */

/**
 * A call that was received.
 * @typedef {object} Received
 * @property {abp.Handle} handle of the call in the core
 * @property {string} callId
 * @property {Request} request
 * @property {unknown} message the message that it arrived in, unless it was in a frame
 * @property {(error: unknown) => void} chunkFailed a chunk could not be sent
 */

/** @typedef {{ type: string, id?: unknown, payload?: unknown }} Message */

/**
 * Where a writer posts, and who is told of what cannot be posted.
 * @typedef {object} Outlet
 * @property {typeof import('./messages.js').CALL | typeof import('./messages.js').ELICITATION} outgoing
 * @property {typeof import('./messages.js').CALL | typeof import('./messages.js').ELICITATION} incoming
 * @property {{ number(handle: abp.Handle): number }} core knows the number of a call that has one, else 0
 * @property {(message: unknown, transfer?: Transferable[], kind?: MessageKind) => void} post
 *   throws if the message cannot be cloned
 * @property {(method: 'unsent' | 'chunkFailed', key: unknown, error: unknown) => void} tellUnsent tells a call what of it could
 *   not be sent
 */

/** What names the progress of a call to its caller. @param {Received} call */
const tokenOf = ({ request, callId }) => (request.progress === true ? callId : request.progress);

/** Writes messages of the published protocol. */
export class MessageWriter {
  #outlet;

  /** @param {Outlet} outlet */
  constructor(outlet) {
    this.#outlet = outlet;
  }

  /** @param {Made} call */
  request(call) {
    const { id, transfer } = call;
    const { request, write } = this.#outlet.outgoing;
    const message = { type: request, id, payload: write(id, call) };
    this.send(message, transfer, (error) => call.unsent(error), 'request');
  }

  /**
   * @param {Pick<Received, 'message'>} call
   * @param {any} response
   * @param {Transferable[]} [transfer]
   */
  respond({ message }, response, transfer) {
    const id = getOwn(message, 'id');
    const answer = { type: this.#outlet.incoming.response, id, payload: response };
    this.send(answer, transfer, (error) => {
      if (transfer?.length) return this.respond({ message }, response);
      // An answer whose id cannot be cloned is lost: nobody could match it.
      void unsendable(response.data, error).then((payload) => this.send({ ...answer, payload }));
    });
  }

  /** @param {Received} call @param {object} info */
  progress(call, info) {
    this.message(progressMessage(tokenOf(call), info));
  }

  /** As a message, it is a control message. */
  cancel() {}

  /**
   * Any other message. The console says if it cannot be sent.
   * @param {Message} message
   * @param {MessageKind} [kind]
   */
  message(message, kind = message.type === 'progress' ? 'droppable' : undefined) {
    this.send(message, undefined, undefined, kind);
  }

  /** @param {Message} message */
  later(message) {
    this.message(message);
  }

  flush() {}

  /**
   * @param {Message} message
   * @param {Transferable[]} [transfer]
   * @param {(error: unknown) => void} [failed]
   * @param {MessageKind} [kind]
   */
  send(
    message,
    transfer,
    failed = (error) => warnUnsent(error, message.payload),
    kind = undefined,
  ) {
    try {
      snapshot(message.payload);
      this.#outlet.post({ timestamp: Date.now(), ...message }, transfer, kind);
    } catch (error) {
      failed(error);
    }
  }
}

/** Whether a result's metadata say more than a duration. @param {any} metadata */
const isMarked = ({ cached, collected }) => cached !== undefined || collected !== undefined;

/** Writes entries of frames, to an endpoint that takes them. What came in a message is answered by one. */
export class EntryWriter {
  #outlet;
  #messages;

  /** @param {Outlet} outlet @param {MessageWriter} messages */
  constructor(outlet, messages) {
    this.#outlet = outlet;
    this.#messages = messages;
    this.frames = new FrameWriter(
      (frame, transfer) => outlet.post(frame, transfer),
      (entry, transfer, error) => this.#undeliverable(entry, transfer, error),
    );
  }

  /** @param {Made} call */
  request(call) {
    const { name, params, timeout, progress, window, input, about, idempotencyKey, transfer } =
      call;
    const key = (call.key = call.callId ?? this.#outlet.core.number(call.handle));
    const last = about ?? Boolean(input);
    const isNamed = last || idempotencyKey;
    const isMore = window?.[0] || isNamed;
    if (timeout || progress !== false || isMore) {
      const more = [params, timeout, progress];
      if (isMore) more.push(...(window ?? [0, 0]));
      if (isNamed) more.push(last);
      if (idempotencyKey) more.push(idempotencyKey);
      this.frames.add(FrameKind.REQUEST_WITH, key, name, more, transfer);
    } else this.frames.add(FrameKind.REQUEST, key, name, params, transfer);
  }

  /**
   * @param {Pick<Received, 'message' | 'request'>} call
   * @param {any} response
   * @param {Transferable[]} [transfer]
   */
  respond(call, response, transfer) {
    if (call.message) return this.#messages.respond(call, response, transfer);
    const { success, data, metadata } = response;
    const { key } = call.request;
    if (success === true && metadata && !isMarked(metadata)) {
      this.frames.add(FrameKind.VALUE, key, metadata.duration, data, transfer);
    } else this.frames.add(FrameKind.RESPONSE, key, undefined, response, transfer);
  }

  /** @param {Received} call @param {object} info */
  progress(call, info) {
    const number = call.request.progress === true && this.#outlet.core.number(call.handle);
    if (number) this.frames.add(FrameKind.PROGRESS, number, undefined, info);
    else this.message(progressMessage(tokenOf(call), info));
  }

  /** @param {Made} call @param {string | undefined} reason */
  cancel({ key }, reason) {
    this.frames.add(FrameKind.CANCEL, key, reason, undefined);
  }

  /** @param {Message} message */
  message(message) {
    this.frames.add(FrameKind.MESSAGE, 0, undefined, { timestamp: Date.now(), ...message });
  }

  /** @param {Message} message */
  later(message) {
    this.frames.addLater(message);
  }

  /** Sends what was collected. */
  flush() {
    this.frames.flush();
  }

  /**
   * @param {unknown[]} entry
   * @param {Transferable[] | undefined} transfer
   * @param {unknown} error
   */
  #undeliverable([kind, key, a, value], transfer, error) {
    const outlet = this.#outlet;
    switch (kind) {
      case FrameKind.REQUEST:
      case FrameKind.REQUEST_WITH:
        return outlet.tellUnsent('unsent', key, error);
      case FrameKind.CHUNK:
        return outlet.tellUnsent('chunkFailed', key, error);
      case FrameKind.VALUE:
      case FrameKind.RESPONSE:
        // Once more, without what could not be moved.
        if (transfer?.length) this.frames.add(/** @type {number} */ (kind), key, a, value);
        else {
          const data = kind === FrameKind.VALUE ? value : getOwn(value, 'data');
          void unsendable(data, error).then((response) => {
            try {
              outlet.post([FrameKind.RESPONSE, key, undefined, response]);
            } catch (failure) {
              // An answer whose key cannot be cloned is lost: nobody could match it.
              return warnUnsent(failure, response);
            }
          });
        }
        return;
    }
    void warnUnsent(error, getOwn(value, 'payload') ?? value);
  }
}

/**
 * The response in place of one that cannot be sent.
 * @param {unknown} data
 * @param {unknown} error
 */
const unsendable = async (data, error) => ({
  success: false,
  error: {
    code: 'OPERATION_FAILED',
    message: await reasonUnsent('result', 'data', data, error),
    retryable: false,
  },
});
