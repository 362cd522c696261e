export { Client, connect } from './agent/connect.js';
export { AbpError } from './common/errors.js';
export { Exposed, expose } from './app/entry.js';
export { transfer } from './common/transfer.js';
