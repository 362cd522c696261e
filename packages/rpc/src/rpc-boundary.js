// Generated from src/abp_rpc.h and wasm/rpc_boundary.c by wasm/generate-boundary.mjs: change those instead.

/** The digest of this file. The module must have the same: see js/driver/instance.js. */
export const ABI = 1871892939;

/** @import { Brand, Pointer } from 'abp-bridge/driver' */

/** @typedef {0 | Brand<'abp_call'>} Handle */
/** @typedef {Brand<'abp_counter'>} Counter */
/** @typedef {Brand<'abp_dialect'>} Dialect */
/** @typedef {Brand<'abp_rpc_error'>} RpcError */
/** @typedef {Brand<'abp_id_type'>} IdType */
/** @typedef {Brand<'abp_request_flag'>} RequestFlag */
/** @typedef {Brand<'abp_answer'>} Answer */
/** @typedef {Brand<'abp_peer_outcome'>} PeerOutcome */
/** @typedef {Brand<'abp_ending'>} Ending */
/** @typedef {Brand<'abp_stop_word'>} StopWord */
/** @typedef {Brand<'abp_packed'>} Packed */

export const ACP = /** @type {Dialect} */ (0);
export const LSP = /** @type {Dialect} */ (1);
export const MCP = /** @type {Dialect} */ (2);
export const DIALECTS = /** @type {Dialect} */ (3);
export const RPC_NO_ERROR = /** @type {RpcError} */ (0);
export const RPC_PARSE = /** @type {RpcError} */ (1);
export const RPC_INVALID_REQUEST = /** @type {RpcError} */ (2);
export const RPC_BATCH = /** @type {RpcError} */ (3);
export const RPC_NUMBER_ID = /** @type {RpcError} */ (4);
export const RPC_TEXT_ID = /** @type {RpcError} */ (5);
export const RPC_DUPLICATE_ID = /** @type {RpcError} */ (6);
export const RPC_METHOD_NOT_FOUND = /** @type {RpcError} */ (7);
export const RPC_INTERNAL = /** @type {RpcError} */ (8);
export const RPC_BUSY = /** @type {RpcError} */ (9);
export const RPC_CANCELLED = /** @type {RpcError} */ (10);
export const RPC_TIMEOUT = /** @type {RpcError} */ (11);
export const RPC_CLOSED = /** @type {RpcError} */ (12);
export const RPC_ERRORS = /** @type {RpcError} */ (13);
export const PEER_DEFAULT_GRACE_MS = 5000;
export const ID_OTHER = /** @type {IdType} */ (0);
export const ID_TEXT = /** @type {IdType} */ (1);
export const ID_NUMBER = /** @type {IdType} */ (2);
export const ID_NULL = /** @type {IdType} */ (3);
export const RESETS = /** @type {RequestFlag} */ (1);
export const WAITS = /** @type {RequestFlag} */ (2);
export const LEAVES = /** @type {RequestFlag} */ (4);
export const HANDSHAKE = /** @type {RequestFlag} */ (8);
export const REPORTS = /** @type {RequestFlag} */ (16);
export const SUBSCRIPTION = /** @type {RequestFlag} */ (32);
export const ROUNDS = /** @type {RequestFlag} */ (64);
export const ANSWER_RESULT = /** @type {Answer} */ (0);
export const ANSWER_ERROR = /** @type {Answer} */ (1);
export const INPUT_REQUIRED = /** @type {Answer} */ (2);
export const ANSWER_STOPPED = /** @type {Answer} */ (3);
export const STOPPED_BY_NAME = /** @type {PeerOutcome} */ (7);
export const RETURNED = /** @type {Ending} */ (0);
export const THREW = /** @type {Ending} */ (1);
export const GAVE_UP = /** @type {Ending} */ (2);
export const RAN_OUT = /** @type {Ending} */ (3);
export const ENDED = /** @type {Ending} */ (4);
export const STOP_METHOD = /** @type {StopWord} */ (0);
export const STOP_KEY = /** @type {StopWord} */ (1);
export const STOP_REQUESTS = /** @type {StopWord} */ (2);
export const STOP_MEMBER = /** @type {StopWord} */ (3);
export const STOP_CREATES = /** @type {StopWord} */ (4);
export const STOP_WITHDRAWS = /** @type {StopWord} */ (5);
export const STOP_WORDS = /** @type {StopWord} */ (6);

/** The offsets of the fields of abp_peer_config, in bytes. */
export const CONFIG = {
  dialect: 0,
  seed: 4,
  maxCalls: 20,
  maxConcurrent: 24,
  remembered: 28,
  rememberFor: 32,
  grace: 36,
  maxIdLength: 40,
  firstNumber: 44,
};

/**
 * A configuration, as JavaScript fills it in; absent fields take their defaults.
 * @typedef {Partial<Record<keyof typeof CONFIG, number> & { dialect: Dialect }>} Config
 */

/**
 * The exports of the module; wasm/rpc_boundary.c describes them.
 * @typedef {object} Exports
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
 * @property {(size: number) => number} scratch
 * @property {() => number} action
 * @property {() => number} abi
 * @property {(peer: Pointer<'abp_peer'>) => Packed} next
 * @property {() => number} config
 * @property {(now: number) => Pointer<'abp_peer'>} create
 * @property {(peer: Pointer<'abp_peer'>) => Pointer<'abp_peer'>} destroy
 * @property {(peer: Pointer<'abp_peer'>, now: number) => Packed} advance
 * @property {(peer: Pointer<'abp_peer'>, now: number) => Packed} now
 * @property {(peer: Pointer<'abp_peer'>, fault: RpcError) => Packed} malformed
 * @property {(peer: Pointer<'abp_peer'>) => Packed} close
 * @property {(peer: Pointer<'abp_peer'>) => Packed} lost
 * @property {(peer: Pointer<'abp_peer'>) => Packed} half_closed
 * @property {(peer: Pointer<'abp_peer'>) => number} closed
 * @property {(peer: Pointer<'abp_peer'>, timeout_ms: number, longest_ms: number, flags: number, parent: Handle) => Packed} request
 * @property {(peer: Pointer<'abp_peer'>, call: Handle, reason_length: number) => Packed} cancel
 * @property {(peer: Pointer<'abp_peer'>, call: Handle) => Packed} unsent
 * @property {(peer: Pointer<'abp_peer'>, type: IdType, value: number, answer: Answer) => Packed} response
 * @property {(peer: Pointer<'abp_peer'>, call: Handle) => Packed} retry
 * @property {(peer: Pointer<'abp_peer'>, type: IdType, value: number) => Packed} progress
 * @property {(peer: Pointer<'abp_peer'>, type: IdType, value: number, fault: RpcError, flags: number) => Packed} received
 * @property {(peer: Pointer<'abp_peer'>) => Packed} start
 * @property {(peer: Pointer<'abp_peer'>, type: IdType, value: number, reason_at: number, reason_length: number, readable: number) => Packed} cancel_received
 * @property {(peer: Pointer<'abp_peer'>, call: Handle) => Packed} stop_received
 * @property {(peer: Pointer<'abp_peer'>, call: Handle) => Packed} withdraw
 * @property {(peer: Pointer<'abp_peer'>, call: Handle) => Packed} postpone
 * @property {(peer: Pointer<'abp_peer'>, call: Handle) => Packed} begin
 * @property {(peer: Pointer<'abp_peer'>, call: Handle, ending: Ending) => Packed} finish
 * @property {(peer: Pointer<'abp_peer'>, call: Handle) => number} pending
 * @property {(peer: Pointer<'abp_peer'>, call: Handle) => number} running
 * @property {(peer: Pointer<'abp_peer'>, type: IdType, value: number) => number} became
 * @property {(peer: Pointer<'abp_peer'>) => number} unversioned
 * @property {(peer: Pointer<'abp_peer'>) => number} cancel_method
 * @property {(peer: Pointer<'abp_peer'>) => number} cancel_key
 * @property {(peer: Pointer<'abp_peer'>) => number} handshake
 * @property {(peer: Pointer<'abp_peer'>) => number} subscription
 * @property {(peer: Pointer<'abp_peer'>, word: StopWord) => number} stop_word
 * @property {(peer: Pointer<'abp_peer'>) => number} batch_version
 * @property {(dialect: Dialect, error: RpcError) => number} error_code
 * @property {(error: RpcError) => number} error_message
 * @property {(error: RpcError) => number} error_has_no_id
 * @property {(peer: Pointer<'abp_peer'>, counter: Counter) => number} count
 */
