/** The types of `abp-bridge/driver`: those of its source, and the types that these use. */
export * from '../index.js';
export type { ConnectOptions } from '../../../js/agent/client.js';
export type { AppTransport, Exposed } from '../../../js/app/expose.js';
export type { Registry } from '../../../js/app/registry.js';
export type { Kinds } from '../../../js/common/check-options.js';
export type { ErrorObject } from '../../../js/common/errors.js';
export type { Fate } from '../../../js/driver/abp-boundary.js';
export type { Tap } from '../../../js/driver/core.js';
export type { Brand, Pointer } from '../../../js/driver/instance.js';
export type { Action } from '../../../js/driver/machine.js';
export type { ForeignApp, Hear } from '../../../js/foreign/foreign-app.js';
export type { Feature, MessageKind, Transport } from '../../../js/transports/transport.js';
export type { ServedApp, WebMcp } from '../../../js/types/app.js';
export type { CallOutcome } from '../../../js/types/outcome.js';
export type { TraceEvent, TraceListener } from '../../../js/types/trace.js';
export type { Response } from '../../../js/wire/messages.js';
