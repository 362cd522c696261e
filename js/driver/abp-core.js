/**
 * ABP's core: an endpoint, the text that crosses, whose meaning is not known here, and the numbers
 * that say what responses say.
 */
import * as abp from './abp-boundary.js';
import { Core, outOfMemory } from './core.js';
import { VALUES, textOf } from './text.js';
import { CoreModule } from './module.js';
import { safely } from '../common/errors.js';
import { plainText } from '../common/copy.js';
import { EMPTY, getOwn, limitOf, ownMembers, parse } from '../common/values.js';

/** The messages that say of a call what it is or became. @type {unknown[]} */
const OF_CALLS = [abp.TYPE_CALL, abp.TYPE_CALL_RESULT, abp.TYPE_QUESTION, abp.TYPE_ANSWER];

/** @type {CoreModule<abp.Exports>} */
const module = new CoreModule(
  () => import('../../dist/abp-wasm.js'),
  () => import('../../dist/abp-js.js'),
  abp.ABI,
);

/**
 * Resolves when cores can be made, with the form of the core: `'wasm'` or `'js'`. See
 * {@link CoreModule.load}.
 */
export const ready = () => module.load();

/**
 * @typedef {object} Limits Each is optional and has a default; see `abp_config` in src/abp.h.
 * @property {number} [maxCalls] calls in flight in each direction (4096)
 * @property {number} [maxConcurrent] handlers running at once; more calls wait their turn
 *   (maxCalls)
 * @property {number} [remembered] finished calls whose fate can still be asked for (1024)
 * @property {number} [rememberFor] and for how long, in ms (300000)
 * @property {number} [grace] ms that a cancel waits for its call to end (app 3000, agent 5000)
 * @property {number} [maxIdLength] bytes of an id (256); no more than 256 characters
 * @property {number} [maxControlLength] bytes of a control message (1048576)
 * @property {number} [heartbeat] ms of silence after which the peer is asked for a sign of life
 *   (15000)
 * @property {number} [probe] agent: ms that an app without a heartbeat may take to say whether it
 *   still knows the session, once there is a reason to ask (10000)
 * @property {number} [streamChunks] chunks of a stream that may be under way and not read (64)
 * @property {number} [streamBytes] and bytes (1048576)
 * @property {number} [firstNumber] the number of the first call made here (1); for tests of what
 *   comes after 2^31
 */

/**
 * What a message says: `value` is a value of its payload.
 * @typedef {object} Said
 * @property {string} [name]
 * @property {unknown} [progress]
 * @property {string} [idempotencyKey]
 * @property {unknown} [about]
 * @property {boolean} [input]
 * @property {unknown} [value]
 */

/**
 * Offset in the scratch, in bytes, of the JSON that describes a member of the handshake; its name
 * comes first.
 */
const DESCRIPTION_AT = 32;

/**
 * The texts of errors, by their numbers, once a response was read or composed.
 * @type {{ code: string, message: string }[]}
 */
const errors = [];
/** Their numbers, by their codes. @type {Map<unknown, number>} */
const numbers = new Map();
/**
 * What the core has said of failures, by the numbers that it was given: it says the same each time.
 * @type {Map<number, abp.Failure>}
 */
const failures = new Map();
const MAX_FAILURES = 256;

/**
 * One endpoint in the core.
 * @extends {Core<'abp_endpoint', abp.Exports, abp.Config>}
 */
export class AbpCore extends Core {
  #maxControlLength;
  #role;

  /**
   * @param {abp.Config} config Limits that are absent have their defaults. `restart` of an app:
   *   whether a new `initialize` replaces the session. `foreign`: whether what it calls is not
   *   ours, which then decides what becomes of a cancel
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
   * @param {unknown} payload of which members are values
   * @returns {number} its length in bytes; 0 if it exceeds a limit or cannot be read
   */
  writeText(message, payload) {
    // A getter or a proxy may throw, and it is often written while the core takes an input.
    const write = (/** @type {boolean} */ isCut) =>
      safely(() => this.write(textOf(message, payload, this.#maxControlLength, isCut)));
    // No call is lost because of what else is said of it.
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
   * What the core has printed.
   * @param {number} at where; 0 if memory was short
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
   * @param {unknown} payload of its message
   */
  received(payload) {
    const { u32 } = this.instance;
    const at = this.x.received(this.pointer) >> 2;
    /** @param {number} field */
    const word = (field) => u32[at + (field >> 2)];
    /** @param {number} field */
    const text = (field) =>
      word(field) ? this.instance.read(word(field), word(field + 4)) : undefined;
    /** @param {number} field whose text is never empty */
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
   * @param {Said} said what is in it
   * @param {abp.Kind} kind of the action; `REPORT` for progress, `NOTIFY` for a notification
   * @param {abp.Handle} [call]
   * @param {[number, number]} [amount] chunks and bytes
   * @returns {any} undefined if there is nothing to be said any more
   */
  print(said, kind, call = 0, [chunks, bytes] = [0, 0]) {
    const { name, progress, idempotencyKey, about, input, value } = said;
    // A token that is no JSON counts as none: the id of the call names its progress.
    const values = [progress, idempotencyKey, about].map((part) => safely(() => plainText(part)));
    // Progress is put into the message that names it.
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
      // Some have one code.
      if (!numbers.has(code)) numbers.set(code, number);
    }
  }

  /**
   * What a response says of its call, as a number.
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
    // Some languages write null for what is absent.
    if (error !== undefined && error !== null) packed |= abp.RESPONSE_FAILS;
    if (isCoded) packed |= abp.RESPONSE_CODED;
    if (retryable === true) packed |= abp.FAILURE_RETRYABLE;
    const fate = Math.max(abp.FATES.indexOf(ownMembers(metadata).outcome), 0);
    return /** @type {abp.Response} */ (packed | (fate << abp.FAILURE_FATE_SHIFT));
  }

  /**
   * What is said of a call that ended without success.
   * @param {abp.Kind} kind of the action
   * @param {number} arg of the action
   * @param {abp.Fate} fate
   * @param {object} [more]
   * @param {any} [more.given] the response of its handler, or of the peer
   * @param {abp.Response} [more.packed] what that says, if it is known
   * @param {string} [more.reason] why it was cancelled, if this side has cancelled it
   * @param {boolean} [more.expired] whether that is that time ran out
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
    const how =
      (expired ? 1 : 0) | (repeatable ? 2 : 0) | (reason === undefined ? 0 : reason ? 12 : 4);
    const key = ((((packed * 32 + kind) * 32 + arg) * 8 + fate) * 16 + how) * 2 + this.#role;
    let failure = failures.get(key);
    if (failure === undefined) {
      failure = x.failure(pointer, kind, arg, fate, packed, how);
      if (failures.size === MAX_FAILURES) failures.clear();
      failures.set(key, failure);
    }
    const response = this.#responseOf(failure, reason);
    const isTheirs = (failure & abp.FAILURE_THEIRS) !== 0;
    if (given === undefined && !isTheirs) return response;
    return this.#extended(response, given, packed, isTheirs);
  }

  /**
   * The response that says this.
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
   * Adds what else its handler or the peer has said.
   * @param {any} response
   * @param {any} given any value
   * @param {abp.Response} packed what it says
   * @param {boolean} isTheirs whether its words stand
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
      const words = [message, theirs, code].find((each) => each && typeof each === 'string');
      error.message =
        isFormed && words ? words : this.instance.readTerminated(this.x.response_message(packed));
    }
    // What succeeded too late is not told.
    if (data !== undefined && success !== true) rest.data = data;
    const more = (metadata || response.metadata) && {
      metadata: { ...ownMembers(metadata), ...response.metadata },
    };
    return { success: false, ...rest, ...response, error, ...more };
  }

  /**
   * A response as it stands in a frame, if that has room for all that it says.
   * @param {any} response
   * @returns {[packed: abp.Failure, message: unknown] | undefined} `message` is as in
   *   js/wire/frame-kinds.js
   */
  packFailure(response) {
    const { data, error, metadata } = response;
    const { outcome, ...more } = metadata ?? EMPTY;
    if (data !== undefined || !error || Object.keys(more).length) return undefined;
    // Beside its message an error says its code and whether it is retryable.
    if (Object.keys(error).length > 3) return undefined;
    const packed = this.packResponse(response) & (abp.RESPONSE_GIVEN - 1);
    const known = errors[packed & abp.FAILURE_ERROR];
    const fate = abp.FATES[packed >> abp.FAILURE_FATE_SHIFT];
    if (!known.code || (outcome ?? fate) !== fate) return undefined;
    const words = error.message === known.message ? undefined : error.message;
    return [/** @type {abp.Failure} */ (packed), words];
  }

  /**
   * The response that stands so in a frame.
   * @param {unknown} packed what is no whole number would be rounded on its way into the core
   * @param {unknown} message
   * @returns {any} undefined if it is none
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
