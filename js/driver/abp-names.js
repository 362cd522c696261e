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
