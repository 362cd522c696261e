/**
 * What `abp-bridge/transports` exports: ways between an agent and an app beside frames, ports and
 * workers, which `connect` and `expose` know by themselves.
 */
export * from './websocket.js';
export * from './extension.js';
export * from '../../js/window/transport.js';
