// Generated from src/abp.h, src/wire_abp.h, wasm/boundary.h, wasm/action.h and wasm/abp_boundary.c by wasm/generate-boundary.mjs: change those instead.

/** The digest of this file. The module must have the same: see js/driver/instance.js. */
export const ABI = 1498975472;

/** @import { Brand, Pointer } from './instance.js' */

/** @typedef {0 | Brand<'abp_call'>} Handle */
/** @typedef {Brand<'abp_status'>} Status */
/** @typedef {Brand<'abp_error'>} ErrorCode */
/** @typedef {Brand<'abp_outcome'>} Outcome */
/** @typedef {Brand<'abp_fate'>} Fate */
/** @typedef {Brand<'abp_role'>} Role */
/** @typedef {Brand<'abp_feature'>} Feature */
/** @typedef {Brand<'abp_kind'>} Kind */
/** @typedef {Brand<'abp_message'>} Message */
/** @typedef {Brand<'abp_session'>} Session */
/** @typedef {Brand<'abp_call_flag'>} CallFlag */
/** @typedef {0 | Brand<'abp_failure'>} Failure */
/** @typedef {0 | Brand<'abp_response'>} Response */
/** @typedef {Brand<'abp_counter'>} Counter */
/** @typedef {Brand<'abp_packed'>} Packed */
/** @typedef {0 | Brand<'abp_call_number'>} CallNumber */

export const OK = /** @type {Status} */ (0);
export const E_MEMORY = /** @type {Status} */ (-1);
export const E_LIMIT = /** @type {Status} */ (-2);
export const E_STATE = /** @type {Status} */ (-3);
export const E_ID = /** @type {Status} */ (-4);
export const E_DUPLICATE = /** @type {Status} */ (-5);
export const E_TEXT = /** @type {Status} */ (-6);
export const E_UNDRAINED = /** @type {Status} */ (-7);
export const FOLLOWS = /** @type {Status} */ (-8);
export const NO_ERROR = /** @type {ErrorCode} */ (0);
export const NOT_INITIALIZED = /** @type {ErrorCode} */ (1);
export const ALREADY_INITIALIZED = /** @type {ErrorCode} */ (2);
export const UNKNOWN_CAPABILITY = /** @type {ErrorCode} */ (3);
export const CAPABILITY_UNAVAILABLE = /** @type {ErrorCode} */ (4);
export const REQUIREMENT_NOT_MET = /** @type {ErrorCode} */ (5);
export const INVALID_PARAMS = /** @type {ErrorCode} */ (6);
export const DUPLICATE_CALL = /** @type {ErrorCode} */ (7);
export const INVALID_ID = /** @type {ErrorCode} */ (8);
export const RATE_LIMITED = /** @type {ErrorCode} */ (9);
export const NOT_SUPPORTED = /** @type {ErrorCode} */ (10);
export const OPERATION_FAILED = /** @type {ErrorCode} */ (11);
export const CANCELLED_ERROR = /** @type {ErrorCode} */ (12);
export const TIMEOUT_ERROR = /** @type {ErrorCode} */ (13);
export const DISCONNECTED_ERROR = /** @type {ErrorCode} */ (14);
export const INTERNAL_ERROR = /** @type {ErrorCode} */ (15);
export const PERMISSION_DENIED = /** @type {ErrorCode} */ (16);
export const PARSE_ERROR = /** @type {ErrorCode} */ (17);
export const SESSION_EXPIRED = /** @type {ErrorCode} */ (18);
export const SESSION_INVALID = /** @type {ErrorCode} */ (19);
export const ERROR_COUNT = /** @type {ErrorCode} */ (20);
export const PENDING = /** @type {Outcome} */ (0);
export const COMPLETED = /** @type {Outcome} */ (1);
export const CANCELLED = /** @type {Outcome} */ (2);
export const TIMED_OUT = /** @type {Outcome} */ (3);
export const DISCONNECTED = /** @type {Outcome} */ (4);
export const UNKNOWN = /** @type {Outcome} */ (5);
export const FAILED = /** @type {Outcome} */ (6);
export const FATE_NONE = /** @type {Fate} */ (0);
export const FATE_UNSTARTED = /** @type {Fate} */ (1);
export const FATE_STOPPED = /** @type {Fate} */ (2);
export const FATE_FINISHED = /** @type {Fate} */ (3);
export const FATE_RUNNING = /** @type {Fate} */ (4);
export const FATE_UNKNOWN = /** @type {Fate} */ (5);
export const FATE_FAILED = /** @type {Fate} */ (6);
export const AGENT = /** @type {Role} */ (0);
export const APP = /** @type {Role} */ (1);
export const NOTIFICATIONS = /** @type {Feature} */ (1);
export const PROGRESS = /** @type {Feature} */ (2);
export const ELICITATION = /** @type {Feature} */ (4);
export const DYNAMIC_CAPABILITIES = /** @type {Feature} */ (8);
export const PORT = /** @type {Feature} */ (16);
export const FRAMES = /** @type {Feature} */ (32);
export const LIVENESS = /** @type {Feature} */ (64);
export const STREAMS = /** @type {Feature} */ (128);
export const OUTCOMES = /** @type {Feature} */ (256);
export const TEXT = /** @type {Feature} */ (512);
export const DEFAULT_MAX_CALLS = 4096;
export const DEFAULT_REMEMBERED = 1024;
export const DEFAULT_REMEMBER_MS = 300000;
export const DEFAULT_APP_GRACE_MS = 3000;
export const DEFAULT_AGENT_GRACE_MS = 5000;
export const DEFAULT_MAX_ID = 256;
export const DEFAULT_MAX_TEXT = 1048576;
export const DEFAULT_HEARTBEAT_MS = 15000;
export const DEFAULT_PROBE_MS = 10000;
export const DEFAULT_CONNECT_MS = 10000;
export const DEFAULT_STREAM_CHUNKS = 64;
export const DEFAULT_STREAM_BYTES = 1048576;
export const NONE = /** @type {Kind} */ (0);
export const QUEUED = /** @type {Kind} */ (1);
export const START = /** @type {Kind} */ (2);
export const ABORT = /** @type {Kind} */ (3);
export const RESULT = /** @type {Kind} */ (4);
export const REFUSE = /** @type {Kind} */ (5);
export const REQUEST = /** @type {Kind} */ (6);
export const SETTLE = /** @type {Kind} */ (7);
export const REPORT = /** @type {Kind} */ (8);
export const SEND = /** @type {Kind} */ (9);
export const SESSION = /** @type {Kind} */ (10);
export const WAKE = /** @type {Kind} */ (11);
export const DROP = /** @type {Kind} */ (12);
export const CHUNK = /** @type {Kind} */ (13);
export const CREDIT = /** @type {Kind} */ (14);
export const RESUME = /** @type {Kind} */ (15);
export const NOTIFY = /** @type {Kind} */ (16);
export const MSG_INITIALIZE = /** @type {Message} */ (0);
export const MSG_INITIALIZE_RESULT = /** @type {Message} */ (1);
export const MSG_CANCEL = /** @type {Message} */ (2);
export const MSG_CANCEL_RESULT = /** @type {Message} */ (3);
export const MSG_SHUTDOWN = /** @type {Message} */ (4);
export const MSG_PING = /** @type {Message} */ (5);
export const MSG_PONG = /** @type {Message} */ (6);
export const MSG_BYE = /** @type {Message} */ (7);
export const MSG_PROBE = /** @type {Message} */ (8);
export const SESSION_NONE = /** @type {Session} */ (0);
export const SESSION_CONNECTING = /** @type {Session} */ (1);
export const SESSION_READY = /** @type {Session} */ (2);
export const SESSION_FAILED = /** @type {Session} */ (3);
export const SESSION_CLOSED = /** @type {Session} */ (4);
export const SESSION_LOST = /** @type {Session} */ (5);
export const WANTS_PROGRESS = /** @type {CallFlag} */ (1);
export const WANTS_STREAM = /** @type {CallFlag} */ (2);
export const ASIDE = /** @type {CallFlag} */ (4);
export const FAILURE_ERROR = 255;
export const FAILURE_RETRYABLE = 256;
export const FAILURE_CANCELLED = 512;
export const FAILURE_THEIRS = 1024;
export const FAILURE_REASON = 2048;
export const FAILURE_FATE_SHIFT = 12;
export const RESPONSE_GIVEN = 65536;
export const RESPONSE_FORMED = 131072;
export const RESPONSE_SUCCEEDS = 262144;
export const RESPONSE_FAILS = 524288;
export const RESPONSE_CODED = 1048576;
export const RESPONSE_PACKED = 1769472;
export const IN_FLIGHT_OUT = /** @type {Counter} */ (0);
export const IN_FLIGHT_IN = /** @type {Counter} */ (1);
export const REMEMBERED = /** @type {Counter} */ (2);
export const LATE = /** @type {Counter} */ (3);
export const STRAY = /** @type {Counter} */ (4);
export const MALFORMED = /** @type {Counter} */ (5);
export const UNKNOWN_TYPE = /** @type {Counter} */ (6);
export const REFUSED = /** @type {Counter} */ (7);
export const OVERRUN = /** @type {Counter} */ (8);
export const COUNTERS = /** @type {Counter} */ (9);
export const MAX_ID_BYTES = 768;
export const SCRATCH_BYTES = 1024;
export const ARG_SHIFT = 8;
export const MORE = 65536;
export const RELEASED = 131072;
export const FATE_SHIFT = 18;
export const SLOT_MASK = 1048575;
export const TYPE_CALL = 'capabilities/call';
export const TYPE_CALL_RESULT = 'capabilities/call-result';
export const TYPE_ANSWER = 'elicitation/response';
export const TYPE_QUESTION = 'elicitation/request';
export const TYPE_INITIALIZE = 'initialize';
export const TYPE_INITIALIZE_RESULT = 'initialize-result';
export const TYPE_SHUTDOWN = 'shutdown';
export const TYPE_CHUNK = 'bridge/chunk';

/** The offsets of the fields of abp_action, in bytes. */
export const ACTION_KIND = 0;
export const ACTION_ARG = 4;
export const ACTION_CALL = 8;
export const ACTION_RELEASED = 12;
export const ACTION_AT = 16;
export const ACTION_TEXT = 24;
export const ACTION_LENGTH = 28;
export const ACTION_CHUNKS = 32;
export const ACTION_FATE = 36;
export const ACTION_NUMBER = 40;

/** The offsets of the fields of abp_body, in bytes. */
export const BODY_NAME = 0;
export const BODY_PAYLOAD = 8;
export const BODY_ID = 16;
export const BODY_TOKEN = 24;
export const BODY_KEY = 32;
export const BODY_REPEATS = 40;
export const BODY_TIMEOUT_MS = 48;
export const BODY_INPUT = 52;

/** The offsets of the fields of abp_config, in bytes. */
export const CONFIG = {
  role: 0,
  seed: 4,
  features: 20,
  maxCalls: 24,
  maxConcurrent: 28,
  remembered: 32,
  rememberFor: 36,
  grace: 40,
  maxIdLength: 44,
  maxControlLength: 48,
  heartbeat: 52,
  probe: 56,
  restart: 60,
  foreign: 64,
  firstNumber: 68,
  streamChunks: 72,
  streamBytes: 76,
};

/** By abp_fate, as on the wire. */
export const FATES = /** @type {any[]} */ ([
  'none',
  'unstarted',
  'stopped',
  'finished',
  'running',
  'unknown',
  'failed',
]);

/**
 * A configuration, as JavaScript fills it in; absent fields take their defaults.
 * @typedef {Partial<Record<keyof typeof CONFIG, number> & { role: Role }>} Config
 */

/**
 * The exports of the module; wasm/abp_boundary.c describes them.
 * @typedef {object} Exports
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
 * @property {(size: number) => number} scratch
 * @property {() => number} action
 * @property {() => number} abi
 * @property {(ep: Pointer<'abp_endpoint'>) => Packed} next
 * @property {() => number} config
 * @property {(now: number) => Pointer<'abp_endpoint'>} create
 * @property {(ep: Pointer<'abp_endpoint'>) => Pointer<'abp_endpoint'>} destroy
 * @property {(ep: Pointer<'abp_endpoint'>, length: number) => Status} describe
 * @property {(ep: Pointer<'abp_endpoint'>, timeout_ms: number) => Packed} connect
 * @property {(ep: Pointer<'abp_endpoint'>) => Packed} close
 * @property {(ep: Pointer<'abp_endpoint'>) => Packed} lost
 * @property {(ep: Pointer<'abp_endpoint'>) => Packed} unread
 * @property {(ep: Pointer<'abp_endpoint'>) => Packed} suspect
 * @property {(ep: Pointer<'abp_endpoint'>, persisted: number) => Packed} leave
 * @property {(ep: Pointer<'abp_endpoint'>, now: number) => Packed} advance
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, timeout_ms: number, flags: number, parent: Handle, bytes: number) => Packed} request
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle, reason_length: number) => Packed} cancel
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, reason_length: number) => Packed} cancel_by_id
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: CallNumber) => Packed} value_received
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle) => Packed} unsent
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: CallNumber) => Packed} progress_received
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle) => number} has_begun
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle) => number} has_ended
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle) => number} progress_wanted
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: CallNumber, timeout_ms: number, flags: number, chunks: number, bytes: number, fault: ErrorCode, about_length: number) => Packed} call_received
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle) => number} stream_wanted
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle, size: number) => Packed} chunk
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: CallNumber, size: number, seen: number) => Packed} chunk_received
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle, size: number) => Packed} chunk_read
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: CallNumber, chunks: number, bytes: number) => Packed} credit_received
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: CallNumber, reason_length: number) => Packed} cancel_received
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle, accepted: number, reason_length: number) => Packed} cancel_answered
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle) => Packed} goes_on
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle) => Packed} postpone
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle) => Packed} begin
 * @property {(ep: Pointer<'abp_endpoint'>, parent: Handle, timeout_ms: number, fault: ErrorCode) => Packed} call_local
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle, outcome: Outcome, fate: Fate) => Packed} finish
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle) => number} became
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number) => Handle} remembered
 * @property {(ep: Pointer<'abp_endpoint'>, length: number) => Packed} receive
 * @property {(ep: Pointer<'abp_endpoint'>, flags: number, fault: ErrorCode) => Packed} take
 * @property {(ep: Pointer<'abp_endpoint'>) => number} received
 * @property {(ep: Pointer<'abp_endpoint'>, id_length: number, number: CallNumber, response: Response) => Packed} outcome_received
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle, response: Response) => Packed} finish_with_outcome
 * @property {(ep: Pointer<'abp_endpoint'>, unix_ms: number) => number} print
 * @property {(ep: Pointer<'abp_endpoint'>, kind: Kind, call: Handle, chunks: number, at: number, unix_ms: number, name: number, payload: number, token: number, key: number, repeats: number, input: number) => number} print_body
 * @property {(ep: Pointer<'abp_endpoint'>, kind: Kind, arg: number, fate: Fate, response: Response, how: number) => Failure} failure
 * @property {(response: Response) => number} response_message
 * @property {(error: number) => number} error_name
 * @property {(error: number) => number} error_message
 * @property {(ep: Pointer<'abp_endpoint'>, status: number, parent: number) => ErrorCode} status_error
 * @property {(ep: Pointer<'abp_endpoint'>, call: Handle) => number} id_text
 * @property {(ep: Pointer<'abp_endpoint'>) => number} features
 * @property {(ep: Pointer<'abp_endpoint'>) => Session} state
 * @property {(ep: Pointer<'abp_endpoint'>, counter: Counter) => number} count
 */
