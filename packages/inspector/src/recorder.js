/**
 * Records the core's inputs and actions, as lines of JSON that the C program abp-replay replays.
 * The core has no clock and no randomness of its own, so the same inputs cause the same actions.
 * docs/inspector.md#recordings has the format.
 */
import { FIELDS, KINDS, abp, getOwn } from 'abp-bridge/driver';
import { readableCopy } from './readable-copy.js';

const DEFAULT_MAX_LENGTH = 4 * 2 ** 20;

/** @import { TraceEvent, TraceListener } from 'abp-bridge/driver' */

/**
 * The inputs: their names in recordings, their exports, and the names of their arguments. A name
 * with `#` is that of a text in the scratch, whose length is the argument. See wasm/abp_boundary.c.
 * @type {[string, (x: abp.Exports) => any, string?][]}
 */
const INPUTS = [
  ['connect', (x) => x.connect, 'timeout'],
  ['close', (x) => x.close],
  ['lost', (x) => x.lost],
  ['leave', (x) => x.leave, 'persisted'],
  ['suspect', (x) => x.suspect],
  ['advance', (x) => x.advance, 'now'],
  ['request', (x) => x.request, '#id timeout flags parent bytes'],
  ['cancel', (x) => x.cancel, 'call #reason'],
  ['cancel_by_id', (x) => x.cancel_by_id, '#id #reason'],
  ['value_received', (x) => x.value_received, '#id number'],
  ['outcome_received', (x) => x.outcome_received, '#id number response'],
  ['unsent', (x) => x.unsent, 'call'],
  ['progress_received', (x) => x.progress_received, '#id number'],
  ['call_received', (x) => x.call_received, '#id number timeout flags chunks bytes fault #about'],
  ['cancel_received', (x) => x.cancel_received, '#id number #reason'],
  ['cancel_answered', (x) => x.cancel_answered, 'call accepted #reason'],
  ['call_local', (x) => x.call_local, 'parent timeout fault'],
  ['postpone', (x) => x.postpone, 'call'],
  ['begin', (x) => x.begin, 'call'],
  ['finish', (x) => x.finish, 'call outcome fate'],
  ['chunk', (x) => x.chunk, 'call size'],
  ['chunk_received', (x) => x.chunk_received, '#id number size seen'],
  ['chunk_read', (x) => x.chunk_read, 'call size'],
  ['credit_received', (x) => x.credit_received, '#id number chunks bytes'],
  ['finish_with_outcome', (x) => x.finish_with_outcome, 'call response'],
  ['receive', (x) => x.receive, '#text'],
  ['take', (x) => x.take, 'flags fault'],
];

/**
 * The name of an export in the module: published modules have short names.
 * @param {(x: abp.Exports) => any} one
 * @returns {string}
 */
const exportName = (one) =>
  one(/** @type {any} */ (new Proxy({}, { get: (_target, name) => name })));

/** Arguments of any number; -1 stands for other values. */
const COUNTS = ['now', 'chunks', 'bytes', 'size'];

/** @type {Record<string, abp.Counter>} */
const COUNTERS = {
  late: abp.LATE,
  stray: abp.STRAY,
  malformed: abp.MALFORMED,
  unknown: abp.UNKNOWN_TYPE,
  refused: abp.REFUSED,
  overrun: abp.OVERRUN,
};

/** The types that the core reads; other members of a message are payload. */
const CONTROL = [
  'initialize',
  'initialize-result',
  'capabilities/cancel',
  'capabilities/cancel-result',
  'cancel-result',
  'shutdown',
  'bridge/ping',
  'bridge/pong',
  'bridge/bye',
];

/** @param {Uint8Array} bytes */
const hexOf = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * A text in a recording. The reader in C accepts no NUL, so such a text is written as bytes.
 * @param {string} text
 */
const written = (text) =>
  text.includes('\0') ? { hex: hexOf(new TextEncoder().encode(text)) } : text;

/**
 * Some members of an object, if there is one.
 * @param {unknown} object
 * @param {...string} keys
 * @returns {any}
 */
const pick = (object, ...keys) =>
  object && Object.fromEntries(keys.map((key) => [key, getOwn(object, key)]));

/**
 * An event without its payloads.
 * @param {TraceEvent} event
 */
function withoutPayloads({ params: _params, response, progress, error, message, ...rest }) {
  const payload = getOwn(message, 'payload');
  const named = ['capability', 'method', 'callId', 'operationId', 'success', 'cancelled'];
  return {
    ...rest,
    error: pick(error, 'code'),
    response: pick(response, 'success', 'cancelled'),
    progress: pick(progress, 'progress', 'total'),
    message: message && {
      ...pick(message, 'type', 'id'),
      payload: {
        ...pick(payload, ...named, 'size', 'chunks', 'bytes'),
        error: pick(getOwn(payload, 'error'), 'code'),
      },
    },
  };
}

/**
 * Records the endpoints that it is given to, as the option `recorder` of `connect` or `expose`.
 */
export class Recorder {
  /** @type {string[]} */
  #lines = [];
  #length = 0;
  #endpoints = 0;
  #maxLength;
  #payloads;
  /**
   * The latest action: its text may still be printed.
   * @type {Record<string, unknown> | undefined}
   */
  #action;
  /** True if the limit was reached: later inputs are missing. */
  truncated = false;

  /**
   * @param {object} [options]
   * @param {number} [options.maxLength] characters after which nothing more is recorded (4 Mi)
   * @param {boolean} [options.payloads] records params, results, progress and messages, too (false)
   */
  constructor({ maxLength = DEFAULT_MAX_LENGTH, payloads = false } = {}) {
    this.#maxLength = maxLength;
    this.#payloads = payloads;
  }

  /** The recording, as lines of JSON. */
  get text() {
    this.#flush();
    return this.#lines.map((line) => `${line}\n`).join('');
  }

  /** @param {object} line */
  #write(line) {
    this.#flush();
    const text = JSON.stringify(line);
    this.#lines.push(text);
    this.#length += text.length + 1;
  }

  #flush() {
    const action = this.#action;
    this.#action = undefined;
    if (action) this.#write(action);
  }

  /**
   * True if one more input may be recorded. Its actions are recorded with it, whatever their
   * length.
   */
  #room() {
    if (this.#length < this.#maxLength) return true;
    if (!this.truncated) this.#write({ truncated: true });
    this.truncated = true;
    return false;
  }

  /**
   * Omits the texts of a handler's error and progress: the core reads only that they are texts.
   * @param {string} text a message or a response, in JSON
   */
  #withoutWords(text) {
    if (this.#payloads || !/"(error|status|stage)":/.test(text)) return text;
    const whole = JSON.parse(text);
    const payload = whole.payload ?? whole;
    if (getOwn(payload.error, 'message')) payload.error.message = '…';
    for (const key of ['status', 'stage']) if (typeof payload[key] === 'string') payload[key] = '…';
    return JSON.stringify(whole);
  }

  /**
   * Records an event, for people and the inspector: replaying does not need it.
   * @type {TraceListener}
   */
  note = (event) => {
    if (!this.#room()) return;
    this.#write({ note: readableCopy(this.#payloads ? event : withoutPayloads(event)) });
  };

  /**
   * Stands between an endpoint and its core.
   * @internal
   * @type {import('abp-bridge/driver').Tap<abp.Exports>}
   */
  tap = (instance) => {
    if (!this.#room()) return instance.x;
    const e = ++this.#endpoints;
    /** The exports for the endpoint: the recorded ones are replaced. */
    const x = { ...instance.x };
    const action = x.action();
    const word = (/** @type {number} */ at) => instance.u32[at >> 2];
    // The address of the configuration from which the endpoint is about to be made.
    const config = x.config();
    // Inputs of an endpoint that was freed are dropped. An endpoint whose recording was cut off
    // cannot be replayed from the start.
    let freed = false;
    const ends = () => freed || this.truncated || !this.#room();

    /**
     * @template {abp.Packed | abp.Status} P
     * @param {P} packed the result of an input or of next()
     */
    const took = (packed) => {
      if (packed < 0) this.#write({ e, status: packed });
      if (packed <= 0) return packed;
      const length = word(action + abp.ACTION_LENGTH);
      const text = length ? instance.read(word(action + abp.ACTION_TEXT), length) : undefined;
      this.#flush();
      this.#action = {
        e,
        then: KINDS[word(action + abp.ACTION_KIND)],
        arg: word(action + abp.ACTION_ARG) || undefined,
        call: word(action + abp.ACTION_CALL) || undefined,
        released: word(action + abp.ACTION_RELEASED) || undefined,
        chunks: word(action + abp.ACTION_CHUNKS) || undefined,
        at: word(action + abp.ACTION_AT) + word(action + abp.ACTION_AT + 4) * 2 ** 32 || undefined,
        ...(text !== undefined && { text: written(text) }),
      };
      return packed;
    };

    /**
     * @param {string} name
     * @param {string | undefined} keys
     * @param {any[]} args of the export, without the endpoint
     */
    const input = (name, keys, args) => {
      /** @type {Record<string, unknown>} */
      const line = { e, do: name };
      let offset = 0;
      for (const [i, key] of keys?.split(' ').entries() ?? []) {
        const value = COUNTS.includes(key) ? countOf(key, args[i]) : args[i] >>> 0;
        if (value && key[0] === '#') {
          const text = instance.readScratch(value, offset);
          line[key.slice(1)] = written(key === '#response' ? this.#withoutWords(text) : text);
          offset += value;
        } else if (value) line[key] = value;
      }
      return line;
    };

    for (const [name, one, keys] of INPUTS) {
      const run = one(instance.x);
      /** @type {any} */ (x)[exportName(one)] = (
        /** @type {unknown} */ pointer,
        /** @type {unknown[]} */ ...args
      ) => {
        if (ends()) return run(pointer, ...args);
        const line = input(name, keys, args);
        // Before it runs, since it might trap. How much of a message the core reads is known
        // afterwards.
        const isPartly = name === 'receive' && !this.#payloads;
        if (!isPartly) this.#write(line);
        let packed = abp.OK;
        try {
          packed = run(pointer, ...args);
        } finally {
          const text = isPartly && readByCore(/** @type {string} */ (line.text), packed);
          if (isPartly) this.#write({ ...line, text: text && this.#withoutWords(text) });
        }
        return took(packed);
      };
    }
    x.create = (now) => {
      const pointer = instance.x.create(now);
      const places = Object.values(abp.CONFIG);
      const fields = FIELDS.map((name, i) => [name, word(config + places[i]) || undefined]);
      const from = config + abp.CONFIG.seed;
      const seed = hexOf(instance.u8.subarray(from, from + 16));
      const about = { ...Object.fromEntries(fields), role: word(config), seed };
      this.#write({ e, do: 'create', now: Math.floor(now), config: about });
      return pointer;
    };
    x.describe = (pointer, length) => {
      const [member] = instance.readScratch(32).split('\0');
      const json = instance.readScratch(length, 32);
      const status = instance.x.describe(pointer, length);
      if (ends()) return status;
      this.#write({ e, do: 'describe', member, json: written(json) });
      return took(status);
    };
    x.next = (pointer) => {
      const packed = instance.x.next(pointer);
      return freed || this.truncated ? packed : took(packed);
    };
    x.print = (pointer, unix) => {
      const at = instance.x.print(pointer, unix);
      if (at && this.#action) {
        const says = this.#withoutWords(instance.readTerminated(at));
        Object.assign(this.#action, { unix, says: written(says) });
      }
      return at;
    };
    x.destroy = (pointer) => {
      if (!ends()) {
        const counted = Object.entries(COUNTERS).map(([key, of]) => [key, x.count(pointer, of)]);
        this.#write({ e, do: 'free', counts: Object.fromEntries(counted) });
      }
      freed = true;
      return instance.x.destroy(pointer);
    };
    return x;
  };
}

/**
 * @param {string} key
 * @param {number} value
 */
const countOf = (key, value) =>
  key === 'now' ? Math.floor(value) : Number.isFinite(value) ? value : -1;

/**
 * The part of a message that the core has read, according to its result: it does not read unknown
 * messages.
 * @param {string} text
 * @param {number} packed
 */
function readByCore(text, packed) {
  if (packed === abp.E_TEXT) return undefined;
  const { type } = text ? JSON.parse(text) : {};
  return packed === 0 && !CONTROL.includes(type) ? JSON.stringify({ type }) : text;
}

/**
 * Makes a recorder: `connect(iframe, { recorder })`, and later `recorder.text`.
 * @param {ConstructorParameters<typeof Recorder>[0]} [options]
 * @returns {Recorder}
 */
export const createRecorder = (options) => new Recorder(options);
