/**
 * JSON-RPC's core: a peer, its ids and its texts. It does not know what they mean.
 */
import { Core, CoreModule } from 'abp-bridge/driver';
import deflated from '../../../dist/rpc-wasm.js';
import * as rpc from './rpc-boundary.js';

/** @import { Fate } from 'abp-bridge/driver' */

/** @type {CoreModule<rpc.Exports>} */
const module = new CoreModule(
  // Not by `import()`, which service workers do not have.
  async () => ({ default: deflated }),
  () => import('../../../dist/rpc-js.js'),
  rpc.ABI,
);

/**
 * Resolves when cores can be made, with their kind: `'wasm'` or `'js'`. See {@link
 * CoreModule.load}.
 */
export const ready = () => module.load();

/**
 * @typedef {object} Limits Each is optional and has a default; see `abp_peer_config` in
 *   src/abp_rpc.h.
 * @property {number} [maxCalls] requests in flight in each direction (4096)
 * @property {number} [maxConcurrent] handlers running at once; more requests wait their turn
 *   (maxCalls)
 * @property {number} [remembered] ended requests whose outcome and late answers are remembered
 *   (1024)
 * @property {number} [rememberFor] ms that they are remembered (300000)
 * @property {number} [grace] ms to wait for a cancelled request (5000)
 * @property {number} [maxIdLength] bytes of a string id (256); no more than 256 characters
 * @property {number} [firstNumber] the number of the first call made here (1); for tests of numbers
 *   above 2^31
 */

/** The length of a string that is too long for an id, or not well-formed. */
const NOT_WRITTEN = 2 ** 32 - 1;

/**
 * One peer in the core. An id is passed as two numbers: its type, and its value or, for a string,
 * its length.
 * @extends {Core<'abp_peer', rpc.Exports, rpc.Config>}
 */
export class PeerCore extends Core {
  /**
   * @param {rpc.Dialect} dialect
   * @param {Limits} [limits]
   */
  constructor(dialect, limits = {}) {
    super(module, rpc.CONFIG, { ...limits, dialect });
    const { x, pointer } = this;
    /**
     * A text of the dialect, if it has it.
     * @param {number} at
     */
    const word = (at) => this.instance.readTerminated(at) || undefined;
    const stopWord = (/** @type {rpc.StopWord} */ which) => word(x.stop_word(pointer, which));
    this.dialect = dialect;
    /** The method that cancels a request. */
    this.cancelMethod = word(x.cancel_method(pointer)) ?? '';
    /** The member of its params that has the request's id. */
    this.cancelKey = word(x.cancel_key(pointer)) ?? '';
    /** The method that must not be cancelled. */
    this.handshake = word(x.handshake(pointer));
    /** The method of a request that its receiver, too, may end by a cancel. */
    this.subscription = word(x.subscription(pointer));
    this.stop = {
      /** The notification that stops requests by their name. */
      method: stopWord(rpc.STOP_METHOD),
      key: stopWord(rpc.STOP_KEY) ?? '',
      /** The method of the requests that it stops; undefined for any. */
      requests: stopWord(rpc.STOP_REQUESTS),
      /** The member of their params that has the name. */
      member: stopWord(rpc.STOP_MEMBER) ?? '',
      /** The method of a request made on behalf of another that gives it a name. */
      creates: stopWord(rpc.STOP_CREATES),
      /**
       * The method of the other side's requests that are answered when this side stops the name.
       */
      withdraws: stopWord(rpc.STOP_WITHDRAWS),
    };
    /** The version of the dialect that has batches. */
    this.batchVersion = word(x.batch_version(pointer));
    /** The code of the error for: cancelled. */
    this.cancelledCode = x.error_code(dialect, rpc.RPC_CANCELLED);
    /** True if messages without `jsonrpc: "2.0"` are accepted. */
    this.unversioned = x.unversioned(pointer) === 1;
  }

  /**
   * An id as input: its type and its value. A string is written to the scratch.
   * @param {unknown} id
   * @returns {[rpc.IdType, number]}
   */
  id(id) {
    if (typeof id === 'number') return [rpc.ID_NUMBER, id];
    if (typeof id === 'string') return [rpc.ID_TEXT, this.writeId(id) || (id && NOT_WRITTEN) || 0];
    return [id === null ? rpc.ID_NULL : rpc.ID_OTHER, 0];
  }

  /**
   * Passes a received cancel to the core.
   * @param {unknown} id
   * @param {unknown} reason
   */
  cancelReceived(id, reason) {
    const [type, value] = this.id(id);
    const at = type === rpc.ID_TEXT && value !== NOT_WRITTEN ? value : 0;
    const length = this.writeReason(reason, at);
    const readable = reason === undefined || typeof reason === 'string' ? 1 : 0;
    return this.x.cancel_received(this.pointer, type, value, at, length, readable);
  }

  /**
   * The outcome of the work of a received request, as long as it is remembered; if that is
   * FATE_RUNNING, `call` is its handle.
   * @param {unknown} id
   */
  became(id) {
    return /** @type {Fate} */ (this.x.became(this.pointer, ...this.id(id)) & 255);
  }

  /**
   * True if a request whose handler has settled must still be answered.
   * @param {rpc.Handle} call
   */
  isPending(call) {
    return this.x.pending(this.pointer, call) === 1;
  }

  /**
   * True if its handler works and was not asked to stop.
   * @param {rpc.Handle} call
   */
  isRunning(call) {
    return this.x.running(this.pointer, call) === 1;
  }

  /** True if it accepts no more messages. Also valid after the end. */
  get isClosed() {
    return this.x.closed(this.pointer) === 1;
  }

  /**
   * The error on the wire for a code of the core. Also valid after the end.
   * @param {rpc.RpcError} error
   */
  error(error) {
    const message = this.instance.readTerminated(this.x.error_message(error));
    return { code: this.x.error_code(this.dialect, error), message };
  }

  /** @override */
  counters() {
    const counters = super.counters();
    // ABP's alone.
    delete counters.unknownType;
    delete counters.overrun;
    return counters;
  }

  /**
   * True if an error is answered with `id: null`.
   * @param {rpc.RpcError} error
   */
  hasNoId(error) {
    return this.x.error_has_no_id(error) === 1;
  }
}
