// Generated from src/abp_tasks.h and wasm/tasks_boundary.c by wasm/generate-boundary.mjs: change those instead.

/** The digest of this file. The module must have the same: see js/driver/instance.js. */
export const ABI = 1570985253;

/** @import { Brand, Pointer } from 'abp-bridge/driver' */

/** @typedef {Brand<'abp_fate'>} Fate */
/** @typedef {0 | Brand<'abp_task'>} Task */
/** @typedef {Brand<'abp_task_state'>} TaskState */
/** @typedef {Brand<'abp_task_verdict'>} TaskVerdict */
/** @typedef {Brand<'abp_watch_step'>} WatchStep */
/** @typedef {Brand<'abp_watch_kind'>} WatchKind */
/** @typedef {Brand<'abp_watch_end'>} WatchEnd */
/** @typedef {Brand<'abp_task_return'>} TaskReturn */
/** @typedef {Brand<'abp_task_saying'>} TaskSaying */
/** @typedef {Brand<'abp_task_record'>} TaskRecord */
/** @typedef {Brand<'abp_task_artifact'>} TaskArtifact */
/** @typedef {Brand<'abp_task_count'>} TaskCount */

export const TASK_UNKNOWN = /** @type {TaskState} */ (0);
export const TASK_SUBMITTED = /** @type {TaskState} */ (1);
export const TASK_WORKING = /** @type {TaskState} */ (2);
export const TASK_COMPLETED = /** @type {TaskState} */ (3);
export const TASK_FAILED = /** @type {TaskState} */ (4);
export const TASK_CANCELED = /** @type {TaskState} */ (5);
export const TASK_INPUT_REQUIRED = /** @type {TaskState} */ (6);
export const TASK_REJECTED = /** @type {TaskState} */ (7);
export const TASK_AUTH_REQUIRED = /** @type {TaskState} */ (8);
export const TASK_TELL = /** @type {TaskVerdict} */ (1);
export const TASK_ABORT = /** @type {TaskVerdict} */ (2);
export const TASK_SETTLE = /** @type {TaskVerdict} */ (4);
export const TASK_END = /** @type {TaskVerdict} */ (8);
export const TASK_START = /** @type {TaskVerdict} */ (16);
export const TASK_ACK = /** @type {TaskVerdict} */ (32);
export const TASK_WAIT = /** @type {TaskVerdict} */ (64);
export const TASK_NAK = /** @type {TaskVerdict} */ (128);
export const TASK_FORGET = /** @type {TaskVerdict} */ (256);
export const TASK_COMMIT = /** @type {TaskVerdict} */ (512);
export const TASK_PARK = /** @type {TaskVerdict} */ (1024);
export const TASK_LEARN = /** @type {TaskVerdict} */ (8192);
export const TASK_REPLACE = /** @type {TaskVerdict} */ (16384);
export const TASK_TAKEN = /** @type {TaskVerdict} */ (32768);
export const WATCH_CANCEL = /** @type {TaskVerdict} */ (2048);
export const WATCH_CLOSE = /** @type {TaskVerdict} */ (4096);
export const WATCH_STEP_SHIFT = 16;
export const TASK_STATE_SHIFT = 20;
export const WATCH_OPEN = /** @type {WatchStep} */ (1);
export const WATCH_ASK = /** @type {WatchStep} */ (2);
export const WATCH_PAUSE = /** @type {WatchStep} */ (3);
export const WATCH_DONE = /** @type {WatchStep} */ (4);
export const WATCH_FAIL = /** @type {WatchStep} */ (5);
export const WATCH_LOST = /** @type {WatchStep} */ (6);
export const WATCH_LATE = /** @type {WatchStep} */ (7);
export const WATCH_STOPPED = /** @type {WatchStep} */ (8);
export const WATCH_STEPS = /** @type {WatchStep} */ (15);
export const WATCH_MESSAGE = /** @type {WatchKind} */ (1);
export const WATCH_TASK = /** @type {WatchKind} */ (2);
export const WATCH_LASTING = /** @type {WatchKind} */ (4);
export const WATCH_REPEATS = /** @type {WatchKind} */ (8);
export const WATCH_ENDED = /** @type {WatchEnd} */ (0);
export const WATCH_FAILED = /** @type {WatchEnd} */ (1);
export const WATCH_BROKEN = /** @type {WatchEnd} */ (2);
export const WATCH_UNSENT = /** @type {WatchEnd} */ (3);
export const WATCH_NUMBERED = /** @type {WatchEnd} */ (4);
export const TASK_RETURNED = /** @type {TaskReturn} */ (0);
export const TASK_THREW = /** @type {TaskReturn} */ (1);
export const TASK_STOPPED = /** @type {TaskReturn} */ (2);
export const TASK_UNSURE = /** @type {TaskReturn} */ (3);
export const TASK_NEWS = /** @type {TaskSaying} */ (1);
export const TASK_SNAPSHOT = /** @type {TaskSaying} */ (2);
export const RECORD_OWN = /** @type {TaskRecord} */ (1);
export const RECORD_OUTCOME = /** @type {TaskRecord} */ (2);
export const ARTIFACT_DROP = /** @type {TaskArtifact} */ (0);
export const ARTIFACT_CREATE = /** @type {TaskArtifact} */ (1);
export const ARTIFACT_REPLACE = /** @type {TaskArtifact} */ (2);
export const ARTIFACT_APPEND = /** @type {TaskArtifact} */ (3);
export const TASKS_LIVE = /** @type {TaskCount} */ (0);
export const TASKS_FINISHED = /** @type {TaskCount} */ (1);
export const TASKS_DROPPED = /** @type {TaskCount} */ (2);
export const TASKS_DEFAULT_MAX_TASKS = 4096;
export const TASKS_DEFAULT_MAX_ARTIFACTS = 4096;
export const TASKS_DEFAULT_REMEMBERED = 1024;
export const TASKS_DEFAULT_REMEMBER_MS = 3600000;
export const TASKS_DEFAULT_MAX_ID = 256;
export const TASKS_DEFAULT_GRACE_MS = 30000;
export const TASKS_DEFAULT_LINGER_MS = 5000;
export const TASKS_DEFAULT_RETRY_MS = 1000;
export const TASKS_DEFAULT_OUTAGE_MS = 60000;

/** The offsets of the fields of abp_tasks_config, in bytes. */
export const CONFIG = {
  seed: 0,
  maxTasks: 16,
  maxArtifacts: 20,
  remembered: 24,
  rememberFor: 28,
  maxIdLength: 32,
  commits: 36,
  grace: 40,
  linger: 44,
  retry: 48,
  outage: 52,
};

/**
 * A configuration, as JavaScript fills it in; absent fields take their defaults.
 * @typedef {Partial<Record<keyof typeof CONFIG, number>>} Config
 */

/**
 * The exports of the module; wasm/tasks_boundary.c describes them.
 * @typedef {object} Exports
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
 * @property {(size: number) => number} scratch
 * @property {() => number} abi
 * @property {() => number} config
 * @property {(now: number) => Pointer<'abp_tasks'>} create
 * @property {(tasks: Pointer<'abp_tasks'>) => Pointer<'abp_tasks'>} destroy
 * @property {(tasks: Pointer<'abp_tasks'>, length: number, state: TaskState) => number} add
 * @property {(tasks: Pointer<'abp_tasks'>, length: number) => Task} find
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => number} start
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => number} run
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, number: number) => void} postpone
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => number} begin
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, number: number, state: TaskState, what: number) => number} says
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, number: number, how: TaskReturn) => number} returns
 * @property {(tasks: Pointer<'abp_tasks'>, length: number) => Fate} became
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, fate: Fate) => void} learn
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => void} leave
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => number} hear
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => Fate} news
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => Fate} doubt
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, grace_ms: number, repeatable: number) => number} cancel
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, ms: number) => void} lease
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, lasting: number) => number} subscribe
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, number: number, length: number, append: number) => number} artifact
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, epoch: number, others: number) => void} own
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, seen: number, epoch: number, what: number) => number} read
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, state: TaskState) => number} committed
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, grace_ms: number) => number} wish
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => number} lost
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => void} forget
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, kind: number) => number} watch
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => number} watch_named
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => number} watch_replied
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, how: WatchEnd, delay_ms: number) => number} watch_ended
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, how: WatchEnd, delay_ms: number) => number} watch_asked
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => number} watch_cancel
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task, how: WatchEnd, delay_ms: number, state: TaskState) => number} watch_cancel_answered
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => number} watch_leave
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => number} watch_stop
 * @property {(tasks: Pointer<'abp_tasks'>, now: number) => void} advance
 * @property {(tasks: Pointer<'abp_tasks'>) => number} next
 * @property {() => Task} due_task
 * @property {(tasks: Pointer<'abp_tasks'>) => number} wake
 * @property {(tasks: Pointer<'abp_tasks'>, task: Task) => TaskState} state
 * @property {(of: TaskState) => number} ended
 * @property {(tasks: Pointer<'abp_tasks'>, what: TaskCount) => number} count
 */
