/**
 * The exports of `abp-bridge/transports`: transports between an agent and an app that `connect` and
 * `expose` do not make themselves.
 */
export * from './websocket.js';
export * from './extension.js';
export * from '../../js/window/transport.js';
