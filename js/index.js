/** abp-bridge: cancellable calls between AI agents and web apps. */
export { Client, connect } from './agent/client.js';
export { AbpError } from './common/errors.js';
export { Exposed, expose } from './app/expose.js';
export { transfer } from './common/transfer.js';
