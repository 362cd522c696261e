/** abp-bridge: cancellable calls between AI agents and web apps. */
export { Client, connect } from './client.js';
export { AbpError } from './errors.js';
export { Exposed, expose } from './expose.js';
export { transfer } from './transfer.js';
