// Generated from src/abp_tasks.h and wasm/tasks_boundary.c by wasm/generate-boundary.mjs: change those instead.

/** The digest of this file. The module must have the same: see js/core/instance.js. */
export const ABI = 511539466;

export const TASK_UNKNOWN = 0;
export const TASK_SUBMITTED = 1;
export const TASK_WORKING = 2;
export const TASK_COMPLETED = 3;
export const TASK_FAILED = 4;
export const TASK_CANCELED = 5;
export const TASK_INPUT_REQUIRED = 6;
export const TASK_REJECTED = 7;
export const TASK_AUTH_REQUIRED = 8;
export const TASK_TELL = 1;
export const TASK_ABORT = 2;
export const TASK_SETTLE = 4;
export const TASK_END = 8;
export const TASK_START = 16;
export const TASK_ACK = 32;
export const TASK_WAIT = 64;
export const TASK_NAK = 128;
export const TASK_FORGET = 256;
export const TASK_STATE_SHIFT = 16;
export const ARTIFACT_DROP = 0;
export const ARTIFACT_CREATE = 1;
export const ARTIFACT_REPLACE = 2;
export const ARTIFACT_APPEND = 3;
export const TASKS_LIVE = 0;
export const TASKS_FINISHED = 1;
export const TASKS_DROPPED = 2;
export const TASKS_DEFAULT_MAX_TASKS = 4096;
export const TASKS_DEFAULT_MAX_ARTIFACTS = 4096;
export const TASKS_DEFAULT_REMEMBERED = 1024;
export const TASKS_DEFAULT_REMEMBER_MS = 3600000;
export const TASKS_DEFAULT_MAX_ID = 256;

/** Where the fields of abp_tasks_config lie, in bytes. */
export const CONFIG = {
  seed: 0,
  max_tasks: 16,
  max_artifacts: 20,
  remembered: 24,
  remember_ms: 28,
  max_id: 32,
};

/**
 * @template {string} T
 * @typedef {import('./instance.js').Pointer<T>} Pointer
 */

/**
 * What the module exports; wasm/tasks_boundary.c says what each means.
 * @typedef {object} Exports
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
 * @property {(size: number) => number} scratch
 * @property {() => number} abi
 * @property {() => number} config
 * @property {(now: number) => Pointer<'abp_tasks'>} create
 * @property {(tasks: Pointer<'abp_tasks'>) => Pointer<'abp_tasks'>} destroy
 * @property {(tasks: Pointer<'abp_tasks'>, length: number, state: number) => number} add
 * @property {(tasks: Pointer<'abp_tasks'>, length: number) => number} find
 * @property {(tasks: Pointer<'abp_tasks'>, task: number) => number} start
 * @property {(tasks: Pointer<'abp_tasks'>, task: number) => number} run
 * @property {(tasks: Pointer<'abp_tasks'>, task: number, number: number, state: number, news: number) => number} says
 * @property {(tasks: Pointer<'abp_tasks'>, task: number, number: number, failed: number) => number} returns
 * @property {(tasks: Pointer<'abp_tasks'>, task: number, grace_ms: number, repeatable: number) => number} cancel
 * @property {(tasks: Pointer<'abp_tasks'>, task: number, number: number, length: number, append: number) => number} artifact
 * @property {(tasks: Pointer<'abp_tasks'>, task: number) => void} forget
 * @property {(tasks: Pointer<'abp_tasks'>, now: number) => void} advance
 * @property {(tasks: Pointer<'abp_tasks'>) => number} next
 * @property {() => number} due_task
 * @property {(tasks: Pointer<'abp_tasks'>) => number} wake
 * @property {(tasks: Pointer<'abp_tasks'>, task: number) => number} state
 * @property {(of: number) => number} ended
 * @property {(tasks: Pointer<'abp_tasks'>, what: number) => number} count
 */
