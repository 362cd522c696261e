/** The main entry: the shim's two sides, and what leads from them to the parts that stand on it. */
export { Client, connect } from './connect.js';
export { AbpError } from '../../../js/common/errors.js';
export { Exposed, expose } from './expose.js';
export { transfer } from '../../../js/common/transfer.js';
