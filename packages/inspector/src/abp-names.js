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

/** Where the fields of abp_config lie, in bytes, by their names in C. */
export const FIELDS = {
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
  probe_ms: 56,
  restart: 60,
  foreign: 64,
  first_number: 68,
  stream_chunks: 72,
  stream_bytes: 76,
};
