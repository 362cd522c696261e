/** ABP's core: an endpoint, and the text that crosses. What the text means is not known here. */
import * as abp from './abp-boundary.js';
import { ActionReader, callLimits, outOfMemory } from './core.js';
import { controlText } from './control-text.js';
import { CoreModule } from './module.js';

/** @type {CoreModule<abp.Exports>} */
const module = new CoreModule(
  () => import('../../dist/abp-wasm.js'),
  () => import('../../dist/abp-js.js'),
  abp.ABI,
);

/** Resolves when cores can be made, with the form of the core: `'wasm'` or `'js'`. See {@link CoreModule.load}. */
export const ready = () => module.load();

/**
 * @typedef {object} Limits Each is optional and has a default; see `abp_config` in src/abp.h.
 * @property {number} [maxCalls] calls in flight in each direction (4096)
 * @property {number} [maxConcurrent] handlers running at once; more calls wait their turn (maxCalls)
 * @property {number} [remembered] finished calls whose fate can still be asked for (1024)
 * @property {number} [rememberFor] and for how long, in ms (300000)
 * @property {number} [grace] how long a cancel waits for its call to end, in ms (app 3000, agent 5000)
 * @property {number} [maxIdLength] bytes of an id (256); no more than 256 characters
 * @property {number} [maxControlLength] bytes of a control message (1048576)
 * @property {number} [heartbeat] ms of silence after which the peer is asked for a sign of life (15000)
 * @property {number} [probe] agent: ms that an app without a heartbeat may take to say whether it still knows the session,
 *   once there is a reason to ask (10000)
 * @property {number} [streamChunks] chunks of a stream that may be under way and not read (64)
 * @property {number} [streamBytes] and bytes (1048576)
 * @property {number} [firstNumber] the number of the first call made here (1); for tests of what comes after 2^31
 */

/** Offset in the scratch, in bytes, of the JSON that describes a member of the handshake; its name comes first. */
const DESCRIPTION_AT = 32;

/**
 * One endpoint in the core.
 * @extends {ActionReader<'abp_endpoint', abp.Exports, abp.Config>}
 */
export class AbpCore extends ActionReader {
  #maxControlLength;

  /**
   * @param {abp.Role} role `AGENT` or `APP`
   * @param {number} features bits of `abp_feature`
   * @param {Limits | null} [limits] absent ones are the defaults
   * @param {boolean} [restart] app: whether a new `initialize` replaces the session
   * @param {import('./core.js').Tap<abp.Exports>} [tap]
   * @param {boolean} [foreign] whether what it calls is not ours: then that decides what becomes of a cancel
   */
  constructor(role, features, limits, restart = false, tap = undefined, foreign = false) {
    limits ??= {}; // null, too, is none
    super(
      module,
      abp.CONFIG,
      {
        ...callLimits(limits),
        role,
        features,
        max_text: limits.maxControlLength,
        heartbeat_ms: limits.heartbeat,
        probe_ms: limits.probe,
        stream_chunks: limits.streamChunks,
        stream_bytes: limits.streamBytes,
        restart: Number(restart),
        foreign: Number(foreign),
      },
      tap,
    );
    this.#maxControlLength = limits.maxControlLength ?? abp.DEFAULT_MAX_TEXT;
  }

  /**
   * Writes a control message to the scratch.
   * @param {unknown} message
   * @returns {number} its length in bytes; 0 if it exceeds a limit or cannot be written as JSON
   */
  writeControl(message) {
    try {
      const text = controlText(message, this.#maxControlLength);
      return text.length > this.#maxControlLength ? 0 : Math.max(this.instance.write(text), 0);
    } catch {
      return 0;
    }
  }

  /**
   * Sets a member of this side's handshake message.
   * @param {string} member its name
   * @param {unknown} value its value; undefined leaves the member out
   */
  describe(member, value) {
    if (value === undefined) return;
    const length = this.instance.write(JSON.stringify(value), DESCRIPTION_AT);
    this.instance.write(`${member}\0`);
    if (length < 0 || this.x.describe(this.pointer, length) < 0) throw outOfMemory();
  }

  /** The message of the SEND or REFUSE just taken. */
  get message() {
    const at = this.x.print(this.pointer, Date.now());
    if (!at) throw outOfMemory();
    return JSON.parse(this.instance.readTerminated(at));
  }

  /**
   * What became of a received call, in this session or an older one.
   * @param {string} callId
   * @returns {{ fate: abp.Fate, outcome: abp.Outcome, call: abp.Handle }} `fate` is `FATE_NONE` if the call is not known;
   *   `call` is its handle if it has not ended
   */
  became(callId) {
    const length = this.writeId(callId);
    const packed = this.x.became(this.pointer, length);
    return {
      fate: /** @type {abp.Fate} */ (packed & 255),
      outcome: /** @type {abp.Outcome} */ (packed >> 8),
      call: this.call,
    };
  }

  /** The id of a call as text. @param {abp.Handle} call */
  idText(call) {
    return this.instance.readScratch(this.x.id_text(this.pointer, call));
  }

  /**
   * The protocol's error for a code of the core.
   * @param {abp.ErrorCode} code
   * @returns {{ code: string, message: string, retryable: boolean }}
   */
  error(code) {
    const { x, instance } = this;
    return {
      code: instance.readTerminated(x.error_name(code)),
      message: instance.readTerminated(x.error_message(code)),
      retryable: x.error_retryable(code) !== 0,
    };
  }

  /** @override */
  counters() {
    const own = { unknownType: abp.UNKNOWN_TYPE, overrun: abp.OVERRUN };
    return { ...super.counters(), ...this.count(own) };
  }
}
