// Generated from src/abp.h, wasm/action.h and wasm/abp_boundary.c by wasm/generate-boundary.mjs: change those instead.

/** The digest of this file. The module must have the same: see js/core/instance.js. */
export const ABI = 334705886;

export const OK = 0;
export const E_MEMORY = -1;
export const E_LIMIT = -2;
export const E_STATE = -3;
export const E_ID = -4;
export const E_DUPLICATE = -5;
export const E_TEXT = -6;
export const E_UNDRAINED = -7;
export const NO_ERROR = 0;
export const NOT_INITIALIZED = 1;
export const ALREADY_INITIALIZED = 2;
export const UNKNOWN_CAPABILITY = 3;
export const CAPABILITY_UNAVAILABLE = 4;
export const REQUIREMENT_NOT_MET = 5;
export const INVALID_PARAMS = 6;
export const DUPLICATE_CALL = 7;
export const INVALID_ID = 8;
export const RATE_LIMITED = 9;
export const NOT_SUPPORTED = 10;
export const OPERATION_FAILED = 11;
export const CANCELLED_ERROR = 12;
export const TIMEOUT_ERROR = 13;
export const DISCONNECTED_ERROR = 14;
export const INTERNAL_ERROR = 15;
export const PERMISSION_DENIED = 16;
export const ERROR_COUNT = 17;
export const PENDING = 0;
export const COMPLETED = 1;
export const CANCELLED = 2;
export const TIMED_OUT = 3;
export const DISCONNECTED = 4;
export const AGENT = 0;
export const APP = 1;
export const NOTIFICATIONS = 1;
export const PROGRESS = 2;
export const ELICITATION = 4;
export const DYNAMIC_CAPABILITIES = 8;
export const PORT = 16;
export const FRAMES = 32;
export const LIVENESS = 64;
export const STREAMS = 128;
export const DEFAULT_MAX_CALLS = 4096;
export const DEFAULT_REMEMBERED = 1024;
export const DEFAULT_REMEMBER_MS = 300000;
export const DEFAULT_APP_GRACE_MS = 3000;
export const DEFAULT_AGENT_GRACE_MS = 5000;
export const DEFAULT_MAX_ID = 256;
export const DEFAULT_MAX_TEXT = 1048576;
export const DEFAULT_HEARTBEAT_MS = 15000;
export const DEFAULT_CONNECT_MS = 10000;
export const DEFAULT_STREAM_CHUNKS = 64;
export const DEFAULT_STREAM_BYTES = 1048576;
export const NONE = 0;
export const QUEUED = 1;
export const START = 2;
export const ABORT = 3;
export const RESULT = 4;
export const REFUSE = 5;
export const REQUEST = 6;
export const SETTLE = 7;
export const REPORT = 8;
export const SEND = 9;
export const SESSION = 10;
export const WAKE = 11;
export const DROP = 12;
export const CHUNK = 13;
export const CREDIT = 14;
export const RESUME = 15;
export const MSG_INITIALIZE = 0;
export const MSG_INITIALIZE_RESULT = 1;
export const MSG_CANCEL = 2;
export const MSG_CANCEL_RESULT = 3;
export const MSG_SHUTDOWN = 4;
export const MSG_PING = 5;
export const MSG_PONG = 6;
export const MSG_BYE = 7;
export const SESSION_NONE = 0;
export const SESSION_CONNECTING = 1;
export const SESSION_READY = 2;
export const SESSION_FAILED = 3;
export const SESSION_CLOSED = 4;
export const SESSION_LOST = 5;
export const WANTS_PROGRESS = 1;
export const WANTS_STREAM = 2;
export const IN_FLIGHT_OUT = 0;
export const IN_FLIGHT_IN = 1;
export const REMEMBERED = 2;
export const LATE = 3;
export const STRAY = 4;
export const MALFORMED = 5;
export const UNKNOWN_TYPE = 6;
export const REFUSED = 7;
export const OVERRUN = 8;
export const COUNTERS = 9;
export const ARG_SHIFT = 8;
export const MORE = 65536;
export const RELEASED = 131072;
export const SLOT_MASK = 1048575;

/** Where the fields of abp_action lie, in bytes. */
export const ACTION = {
  kind: 0,
  arg: 4,
  call: 8,
  released: 12,
  at: 16,
  text: 24,
  length: 28,
  chunks: 32,
};

/** Where the fields of abp_config lie, in bytes. */
export const CONFIG = {
  role: 0,
  seed: 4,
  features: 20,
  max_calls: 24,
  max_concurrent: 28,
  remembered: 32,
  remember_ms: 36,
  grace_ms: 40,
  max_id: 44,
  max_text: 48,
  heartbeat_ms: 52,
  restart: 56,
  first_number: 60,
  stream_chunks: 64,
  stream_bytes: 68,
};

/**
 * @template {string} T
 * @typedef {import('./instance.js').Pointer<T>} Pointer
 */

/**
 * What the module exports; wasm/abp_boundary.c says what each means.
 * @typedef {object} Exports
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
 * @property {(size: number) => number} scratch
 * @property {() => number} action
 * @property {() => number} abi
 * @property {(ep: Pointer<'abp_endpoint'>) => number} next
 * @property {() => number} config
 * @property {(now: number) => Pointer<'abp_endpoint'>} create
 * @property {(ep: Pointer<'abp_endpoint'>) => Pointer<'abp_endpoint'>} destroy
 * @property {(ep: Pointer<'abp_endpoint'>, length: number) => number} describe
 * @property {(ep: Pointer<'abp_endpoint'>, timeout_ms: number) => number} connect
 * @property {(ep: Pointer<'abp_endpoint'>) => number} close
 * @property {(ep: Pointer<'abp_endpoint'>) => number} lost
 * @property {(ep: Pointer<'abp_endpoint'>, persisted: number) => number} leave
 * @property {(ep: Pointer<'abp_endpoint'>, now: number) => number} advance
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, timeout_ms: number, flags: number, parent: number) => number} request
 * @property {(ep: Pointer<'abp_endpoint'>, call: number, reason_length: number) => number} cancel
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, reason_length: number) => number} cancel_by_id
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: number, outcome: number) => number} result_received
 * @property {(ep: Pointer<'abp_endpoint'>, call: number) => number} unsent
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: number) => number} progress_received
 * @property {(ep: Pointer<'abp_endpoint'>, call: number) => number} progress_wanted
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: number, timeout_ms: number, flags: number, chunks: number, bytes: number, fault: number) => number} call_received
 * @property {(ep: Pointer<'abp_endpoint'>, call: number) => number} stream_wanted
 * @property {(ep: Pointer<'abp_endpoint'>, call: number, size: number) => number} chunk
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: number, size: number) => number} chunk_received
 * @property {(ep: Pointer<'abp_endpoint'>, call: number, size: number) => number} chunk_read
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: number, chunks: number, bytes: number) => number} credit_received
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: number, reason_length: number) => number} cancel_received
 * @property {(ep: Pointer<'abp_endpoint'>, parent: number, timeout_ms: number, fault: number) => number} call_local
 * @property {(ep: Pointer<'abp_endpoint'>, call: number, outcome: number) => number} finish
 * @property {(ep: Pointer<'abp_endpoint'>, length: number) => number} receive
 * @property {(ep: Pointer<'abp_endpoint'>, unix_ms: number) => number} print
 * @property {(ep: Pointer<'abp_endpoint'>, call: number) => number} id_text
 * @property {(ep: Pointer<'abp_endpoint'>, call: number) => number} number
 * @property {(ep: Pointer<'abp_endpoint'>) => number} features
 * @property {(ep: Pointer<'abp_endpoint'>) => number} state
 * @property {(ep: Pointer<'abp_endpoint'>, counter: number) => number} count
 * @property {(code: number) => number} error_name
 * @property {(code: number) => number} error_message
 * @property {(code: number) => number} error_retryable
 */
