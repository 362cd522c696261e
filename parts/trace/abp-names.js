// Generated from src/abp.h by wasm/generate-boundary.mjs: change that instead.

/** By abp_kind. */
export const KINDS = [
  'none',
  'queued',
  'start',
  'abort',
  'result',
  'refuse',
  'request',
  'settle',
  'report',
  'send',
  'session',
  'wake',
  'drop',
  'chunk',
  'credit',
  'resume',
  'notify',
];

/** By abp_session. */
export const SESSIONS = ['none', 'connecting', 'ready', 'failed', 'closed', 'lost'];

/** The fields of abp_config in their order, by their names in C. */
export const FIELDS = [
  'role',
  'seed',
  'features',
  'max_calls',
  'max_concurrent',
  'remembered',
  'remember_ms',
  'grace_ms',
  'max_id',
  'max_text',
  'heartbeat_ms',
  'probe_ms',
  'restart',
  'foreign',
  'first_number',
  'stream_chunks',
  'stream_bytes',
];
