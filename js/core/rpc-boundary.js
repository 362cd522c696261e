// Generated from src/abp_rpc.h and wasm/rpc_boundary.c by wasm/generate-boundary.mjs: change those instead.

/** The digest of this file. The module must have the same: see js/core/instance.js. */
export const ABI = 601601967;

export const ACP = 0;
export const LSP = 1;
export const MCP = 2;
export const DIALECTS = 3;
export const RPC_NO_ERROR = 0;
export const RPC_PARSE = 1;
export const RPC_INVALID_REQUEST = 2;
export const RPC_BATCH = 3;
export const RPC_NUMBER_ID = 4;
export const RPC_TEXT_ID = 5;
export const RPC_DUPLICATE_ID = 6;
export const RPC_METHOD_NOT_FOUND = 7;
export const RPC_INTERNAL = 8;
export const RPC_BUSY = 9;
export const RPC_CANCELLED = 10;
export const RPC_TIMEOUT = 11;
export const RPC_CLOSED = 12;
export const RPC_ERRORS = 13;
export const PEER_DEFAULT_GRACE_MS = 5000;
export const ID_OTHER = 0;
export const ID_TEXT = 1;
export const ID_NUMBER = 2;
export const ID_NULL = 3;
export const RESETS = 1;
export const WAITS = 2;
export const LEAVES = 4;
export const HANDSHAKE = 8;
export const REPORTS = 16;
export const SUBSCRIPTION = 32;
export const RETURNED = 0;
export const THREW = 1;
export const GAVE_UP = 2;
export const RAN_OUT = 3;

/** Where the fields of abp_peer_config lie, in bytes. */
export const CONFIG = {
  dialect: 0,
  seed: 4,
  max_calls: 20,
  max_concurrent: 24,
  remembered: 28,
  remember_ms: 32,
  grace_ms: 36,
  max_id: 40,
  first_number: 44,
};

/**
 * @template {string} T
 * @typedef {import('./instance.js').Pointer<T>} Pointer
 */

/**
 * What the module exports; wasm/rpc_boundary.c says what each means.
 * @typedef {object} Exports
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
 * @property {(size: number) => number} scratch
 * @property {() => number} action
 * @property {() => number} abi
 * @property {(peer: Pointer<'abp_peer'>) => number} next
 * @property {() => number} config
 * @property {(now: number) => Pointer<'abp_peer'>} create
 * @property {(peer: Pointer<'abp_peer'>) => Pointer<'abp_peer'>} destroy
 * @property {(peer: Pointer<'abp_peer'>, now: number) => number} advance
 * @property {(peer: Pointer<'abp_peer'>, fault: number) => number} malformed
 * @property {(peer: Pointer<'abp_peer'>) => number} close
 * @property {(peer: Pointer<'abp_peer'>) => number} lost
 * @property {(peer: Pointer<'abp_peer'>) => number} half_closed
 * @property {(peer: Pointer<'abp_peer'>, timeout_ms: number, longest_ms: number, flags: number, parent: number) => number} request
 * @property {(peer: Pointer<'abp_peer'>, call: number) => number} number
 * @property {(peer: Pointer<'abp_peer'>, call: number, reason_length: number) => number} cancel
 * @property {(peer: Pointer<'abp_peer'>, call: number) => number} unsent
 * @property {(peer: Pointer<'abp_peer'>, type: number, value: number, is_error: number) => number} response
 * @property {(peer: Pointer<'abp_peer'>, type: number, value: number) => number} progress
 * @property {(peer: Pointer<'abp_peer'>, type: number, value: number, fault: number) => number} received
 * @property {(peer: Pointer<'abp_peer'>) => number} start
 * @property {(peer: Pointer<'abp_peer'>, type: number, value: number, reason_at: number, reason_length: number, readable: number) => number} cancel_received
 * @property {(peer: Pointer<'abp_peer'>, call: number, ending: number) => number} finish
 * @property {(peer: Pointer<'abp_peer'>, call: number) => number} pending
 * @property {(peer: Pointer<'abp_peer'>, call: number) => number} running
 * @property {(peer: Pointer<'abp_peer'>) => number} unversioned
 * @property {(peer: Pointer<'abp_peer'>) => number} cancel_method
 * @property {(peer: Pointer<'abp_peer'>) => number} cancel_key
 * @property {(peer: Pointer<'abp_peer'>) => number} handshake
 * @property {(peer: Pointer<'abp_peer'>) => number} subscription
 * @property {(peer: Pointer<'abp_peer'>) => number} batch_version
 * @property {(peer: Pointer<'abp_peer'>, error: number) => number} error_code
 * @property {(error: number) => number} error_message
 * @property {(error: number) => number} error_has_no_id
 * @property {(peer: Pointer<'abp_peer'>, counter: number) => number} count
 */
