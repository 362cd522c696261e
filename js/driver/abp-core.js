/**
 * The core of ABP: an endpoint, the messages that it reads and prints as text, and responses as
 * numbers.
 */
import * as abp from './abp-boundary.js';
import { Core, outOfMemory } from './core.js';
import { VALUES, textOf } from './text.js';
import { CoreModule } from './module.js';
import { safely } from '../common/errors.js';
import { plainText } from '../common/copy.js';
import { EMPTY, getOwn, limitOf, ownMembers, parse } from '../common/values.js';

/** The messages that start calls and questions, and those that end them. @type {unknown[]} */
const OF_CALLS = [abp.TYPE_CALL, abp.TYPE_CALL_RESULT, abp.TYPE_QUESTION, abp.TYPE_ANSWER];

/** @type {CoreModule<abp.Exports>} */
const module = new CoreModule(
  () => import('../../dist/abp-wasm.js'),
  () => import('../../dist/abp-js.js'),
  abp.ABI,
);

/**
 * Resolves when cores can be made, with the form of the core: `'wasm'` or `'js'`. See {@link
 * CoreModule.load}.
 */
export const ready = () => module.load();

/**
 * @typedef {object} Limits Each is optional and has a default; see `abp_config` in src/abp.h.
 * @property {number} [maxCalls] calls in flight in each direction (4096)
 * @property {number} [maxConcurrent] handlers running at once; more calls wait their turn
 *   (maxCalls)
 * @property {number} [remembered] finished calls that are remembered (1024)
 * @property {number} [rememberFor] how long they are remembered, in ms (300000)
 * @property {number} [grace] ms that a cancel waits for its call to end (app 3000, agent 5000)
 * @property {number} [maxIdLength] bytes of an id (256); no more than 256 characters
 * @property {number} [maxControlLength] bytes of a control message (1048576)
 * @property {number} [heartbeat] ms of silence after which the peer is asked for a sign
 *   (15000)
 * @property {number} [probe] agent: ms that an app without a heartbeat may take to answer when it
 *   is asked whether it still has the session (10000)
 * @property {number} [streamChunks] chunks of a stream that may be sent before they are read (64)
 * @property {number} [streamBytes] bytes of a stream that may be sent before they are read
 *   (1048576)
 * @property {number} [firstNumber] the number of the first call made here (1); for tests of numbers
 *   beyond 2^31
 */

/**
 * The content of a message: `value` is a value of its payload.
 * @typedef {object} Content
 * @property {string} [name]
 * @property {unknown} [progress]
 * @property {string} [idempotencyKey]
 * @property {unknown} [about]
 * @property {boolean} [input]
 * @property {unknown} [value]
 */

/**
 * Offset in the scratch, in bytes, of the JSON of a member of the handshake; the member's name
 * comes first.
 */
const DESCRIPTION_AT = 32;

/**
 * The texts of errors, by number. Filled when a response is first read or composed.
 * @type {{ code: string, message: string }[]}
 */
const errors = [];
/** The numbers of errors, by code. @type {Map<unknown, number>} */
const numbers = new Map();
/**
 * A cache of the failures that the core has computed, by their arguments.
 * @type {Map<number, abp.Failure>}
 */
const failures = new Map();
const MAX_FAILURES = 256;

/**
 * An endpoint in the core.
 * @extends {Core<'abp_endpoint', abp.Exports, abp.Config>}
 */
export class AbpCore extends Core {
  #maxControlLength;
  #role;

  /**
   * @param {abp.Config} config absent limits take their defaults. `restart`, for an app: 1 if a new
   *   `initialize` replaces the session. `foreign`: 1 if the handlers pass calls on to a foreign
   *   app, which decides whether a cancel succeeds
   * @param {import('./core.js').Tap<abp.Exports>} [tap]
   */
  constructor(config, tap) {
    super(module, abp.CONFIG, config, tap);
    this.#role = config.role ?? abp.AGENT;
    this.#maxControlLength = limitOf(config.maxControlLength) || abp.DEFAULT_MAX_TEXT;
  }

  /**
   * Writes a message to the scratch, without its values.
   * @param {unknown} message
   * @param {unknown} payload its members may be values
   * @returns {number} its length in bytes; 0 if it exceeds a limit or cannot be read
   */
  writeText(message, payload) {
    // A getter or a proxy may throw, and this often runs during an input of the core.
    const write = (/** @type {boolean} */ isCut) =>
      safely(() => this.write(textOf(message, payload, this.#maxControlLength, isCut)));
    // A call must not be lost because its other members are too large: write them shortened.
    const isOfCall = () => OF_CALLS.includes(safely(() => getOwn(message, 'type')));
    return write(false) ?? (isOfCall() ? write(true) : undefined) ?? 0;
  }

  /**
   * Sets a member of this side's handshake message.
   * @param {string} member its name
   * @param {unknown} value its value; undefined leaves the member out
   */
  describe(member, value) {
    if (value === undefined) return;
    const name = `${member}\0`.padEnd(DESCRIPTION_AT);
    const length = this.write(name + plainText(value));
    if (!length || this.x.describe(this.pointer, length - DESCRIPTION_AT) < 0) throw outOfMemory();
  }

  /**
   * Reads a message that the core has printed.
   * @param {number} at its address; 0 if memory was short
   */
  #printed(at) {
    if (!at) throw outOfMemory();
    return parse(this.instance.readTerminated(at));
  }

  /** The message of the SEND or REFUSE just taken. */
  get message() {
    return this.#printed(this.x.print(this.pointer, Date.now()));
  }

  /**
   * The parts of the call, the question or the notification that was received.
   * @param {unknown} payload the payload of its message
   */
  received(payload) {
    const { u32 } = this.instance;
    const at = this.x.received(this.pointer) >> 2;
    /** @param {number} field */
    const word = (field) => u32[at + (field >> 2)];
    /** @param {number} field */
    const text = (field) =>
      word(field) ? this.instance.read(word(field), word(field + 4)) : undefined;
    /** @param {number} field a field whose text is never empty */
    const json = (field) => parse(text(field) ?? 'null') ?? undefined;
    const place = text(abp.BODY_PAYLOAD);
    return {
      name: text(abp.BODY_NAME),
      value: place && safely(() => getOwn(payload, VALUES[Number(place)]) ?? null),
      progress: json(abp.BODY_TOKEN),
      idempotencyKey: json(abp.BODY_KEY),
      about: json(abp.BODY_REPEATS),
      timeout: word(abp.BODY_TIMEOUT_MS),
      input: word(abp.BODY_INPUT) !== 0,
    };
  }

  /**
   * Prints a message that has a value.
   * @param {Content} content
   * @param {abp.Kind} kind of the action; `REPORT` for progress, `NOTIFY` for a notification
   * @param {abp.Handle} [call]
   * @param {[number, number]} [amount] chunks and bytes
   * @returns {any} undefined if there is no message to send any more
   */
  print(content, kind, call = 0, [chunks, bytes] = [0, 0]) {
    const { name, progress, idempotencyKey, about, input, value } = content;
    // A token that JSON cannot represent counts as absent: then the call's id names its progress.
    const values = [progress, idempotencyKey, about].map((part) => safely(() => plainText(part)));
    // The progress is added later, to the message that has its token.
    const whole = kind === abp.REPORT ? '{}' : '0';
    let end = 0;
    const lengths = /** @type {[number, number, number, number, number]} */ (
      [name, whole, ...values].map((text) => {
        const length = this.write(text, end);
        end += length;
        return length;
      })
    );
    const { x, pointer } = this;
    const at = x.print_body(pointer, kind, call, chunks, bytes, Date.now(), ...lengths, +!!input);
    if (!at) return undefined;
    const message = this.#printed(at);
    const { payload } = message;
    for (const key of VALUES) if (key in payload) payload[key] = value;
    return message;
  }

  // --- Responses ---------------------------------------------------------------------------------

  /** Reads the texts of the errors, which are the same in each module. */
  #readErrors() {
    const { x, instance } = this;
    for (let number = 0; number < abp.ERROR_COUNT; number++) {
      const code = instance.readTerminated(x.error_name(number));
      errors.push({ code, message: instance.readTerminated(x.error_message(number)) });
      // Some errors share a code.
      if (!numbers.has(code)) numbers.set(code, number);
    }
  }

  /**
   * The outcome in a response, as a number.
   * @param {unknown} response any value; undefined if there is none
   * @returns {abp.Response}
   */
  packResponse(response) {
    if (response === undefined) return 0;
    if (!errors.length) this.#readErrors();
    const { success, cancelled, error, metadata } = ownMembers(response);
    const { code, retryable } = ownMembers(error);
    const isCoded = typeof code === 'string';
    /** @type {number} */
    let packed = isCoded ? (numbers.get(code) ?? abp.NO_ERROR) : abp.OPERATION_FAILED;
    packed |= abp.RESPONSE_GIVEN;
    if (typeof success === 'boolean') packed |= abp.RESPONSE_FORMED;
    if (success === true) packed |= abp.RESPONSE_SUCCEEDS;
    if (cancelled === true) packed |= abp.FAILURE_CANCELLED;
    // Some languages write null for absent members.
    if (error !== undefined && error !== null) packed |= abp.RESPONSE_FAILS;
    if (isCoded) packed |= abp.RESPONSE_CODED;
    if (retryable === true) packed |= abp.FAILURE_RETRYABLE;
    const fate = Math.max(abp.FATES.indexOf(ownMembers(metadata).outcome), 0);
    return /** @type {abp.Response} */ (packed | (fate << abp.FAILURE_FATE_SHIFT));
  }

  /**
   * The response of a call that ended without success.
   * @param {abp.Kind} kind of the action
   * @param {number} arg of the action
   * @param {abp.Fate} fate
   * @param {object} [more]
   * @param {any} [more.given] the response of its handler, or of the peer
   * @param {abp.Response} [more.packed] its outcome as a number, if it is known
   * @param {string} [more.reason] why it was cancelled, if this side has cancelled it
   * @param {boolean} [more.expired] whether the reason is a timeout
   * @param {boolean} [more.repeatable] whether its capability may run twice
   * @returns {any} the response
   */
  response(
    kind,
    arg,
    fate,
    { given, packed = this.packResponse(given), reason, expired, repeatable } = {},
  ) {
    const { x, pointer } = this;
    const flags =
      (expired ? 1 : 0) | (repeatable ? 2 : 0) | (reason === undefined ? 0 : reason ? 12 : 4);
    const key = ((((packed * 32 + kind) * 32 + arg) * 8 + fate) * 16 + flags) * 2 + this.#role;
    let failure = failures.get(key);
    if (failure === undefined) {
      failure = x.failure(pointer, kind, arg, fate, packed, flags);
      if (failures.size === MAX_FAILURES) failures.clear();
      failures.set(key, failure);
    }
    const response = this.#responseOf(failure, reason);
    const isTheirs = (failure & abp.FAILURE_THEIRS) !== 0;
    if (given === undefined && !isTheirs) return response;
    return this.#extended(response, given, packed, isTheirs);
  }

  /**
   * Makes the response of a failure.
   * @param {abp.Failure} failure
   * @param {string} [reason]
   * @returns {any}
   */
  #responseOf(failure, reason) {
    if (!errors.length) this.#readErrors();
    const { code, message } = errors[failure & abp.FAILURE_ERROR];
    const fate = failure >> abp.FAILURE_FATE_SHIFT;
    /** @type {any} */
    const response = { success: false };
    if (failure & abp.FAILURE_CANCELLED) response.cancelled = true;
    response.error = {
      code,
      message: failure & abp.FAILURE_REASON && reason ? reason : message,
      retryable: (failure & abp.FAILURE_RETRYABLE) !== 0,
    };
    if (fate) response.metadata = { outcome: abp.FATES[fate] };
    return response;
  }

  /**
   * Adds the further members of the handler's or the peer's response.
   * @param {any} response
   * @param {any} given their response, any value
   * @param {abp.Response} packed its outcome as a number
   * @param {boolean} isTheirs whether its message is kept
   * @returns {any} the response
   */
  #extended(response, given, packed, isTheirs) {
    const { error: theirs, metadata, data, success, ...rest } = ownMembers(given);
    const members = ownMembers(theirs);
    const error = { ...members, ...response.error };
    const isFormed = (packed & abp.RESPONSE_FORMED) !== 0;
    if (!isFormed && given !== undefined) error.details = given;
    if (isTheirs) {
      const { code, message } = members;
      error.code ||= code;
      const text = [message, theirs, code].find((each) => each && typeof each === 'string');
      error.message =
        isFormed && text ? text : this.instance.readTerminated(this.x.response_message(packed));
    }
    // A success that came too late is left out.
    if (data !== undefined && success !== true) rest.data = data;
    const more = (metadata || response.metadata) && {
      metadata: { ...ownMembers(metadata), ...response.metadata },
    };
    return { success: false, ...rest, ...response, error, ...more };
  }

  /**
   * Packs a failure for a frame.
   * @param {any} response
   * @returns {[packed: abp.Failure, message: unknown] | undefined} `message` is as in
   *   js/wire/frame-kinds.js; undefined if the response has more than fits into these
   */
  packFailure(response) {
    const { data, error, metadata } = response;
    const { outcome, ...more } = metadata ?? EMPTY;
    if (data !== undefined || !error || Object.keys(more).length) return undefined;
    // Besides its message an error has only a code and `retryable`.
    if (Object.keys(error).length > 3) return undefined;
    const packed = this.packResponse(response) & (abp.RESPONSE_GIVEN - 1);
    const known = errors[packed & abp.FAILURE_ERROR];
    const fate = abp.FATES[packed >> abp.FAILURE_FATE_SHIFT];
    if (!known.code || (outcome ?? fate) !== fate) return undefined;
    const ownMessage = error.message === known.message ? undefined : error.message;
    return [/** @type {abp.Failure} */ (packed), ownMessage];
  }

  /**
   * Unpacks a failure from a frame.
   * @param {unknown} packed only a whole number is valid: others would be rounded in the core
   * @param {unknown} message
   * @returns {any} the response; undefined if `packed` is invalid
   */
  unpackFailure(packed, message) {
    if (typeof packed !== 'number' || packed >>> 0 !== packed) return undefined;
    const error = packed & abp.FAILURE_ERROR;
    const isKnown =
      error &&
      error < abp.ERROR_COUNT &&
      !(packed & (abp.FAILURE_THEIRS | abp.FAILURE_REASON)) &&
      abp.FATES[packed >>> abp.FAILURE_FATE_SHIFT];
    if (!isKnown) return undefined;
    const response = this.#responseOf(/** @type {abp.Failure} */ (packed));
    if (typeof message === 'string') response.error.message = message;
    return response;
  }

  /**
   * The id of a call as text.
   * @param {abp.Handle} call
   */
  idText(call) {
    return this.instance.readScratch(this.x.id_text(this.pointer, call));
  }
}
