/** The main entry as TypeScript sees it: what js/index.js exports, and by name the types that are met on the way. */
export * from '../index.js';
export { Client, connect } from '../agent/client.js'; // with what they say of themselves
export { Exposed, expose } from '../app/expose.js';
export type { CallStream } from '../agent/call-stream.js';
export type { Patience, Reconnecting, Reloading } from '../agent/retry.js';
export type { CapabilityInfo } from '../agent/capability-list.js';
export type {
  AgentOptions,
  AnyWorker,
  AttemptOptions,
  CallOptions,
  OutcomeOptions,
  ConnectOptions,
  ConnectTarget,
  Opener,
} from '../agent/client.js';
export type { Connection, Session } from '../app/connection.js';
export type {
  AppTransport,
  Definition,
  ExposeOptions,
  Interface,
  ServeOptions,
} from '../app/expose.js';
export type {
  CallContext,
  Capability,
  Described,
  Handler,
  Implemented,
  Requirement,
} from '../app/registry.js';
export type { ErrorObject, Told } from '../common/errors.js';
export type { Token } from '../common/token.js';
export type { Limits } from '../core/abp-core.js';
export type { Brand } from '../core/instance.js';
export type { RequestOptions } from '../session/pending-call.js';
export type { ObserverOptions } from '../session/observers.js';
export type { TraceEvent, TraceListener, TraceOutcome } from '../session/trace.js';
export type { Feature, MessageKind, Prepare, Transport } from '../transports/transport.js';
export type { Manifest } from '../wire/manifest.js';
export type {
  CallArguments,
  CapabilitiesOf,
  ChunkOf,
  DataOf,
  ExposedApp,
  Inferred,
  InputOf,
  NameOf,
  OutputOf,
  ParamsOf,
  ResponseOf,
  Schema,
  StandardSchema,
  TypedCapability,
  TypedDefinition,
} from './app.js';
export type { ErrorCode, ProtocolCode } from './errors.js';
export type { CallFate, CallOutcome } from './outcome.js';
export type { KeyEnded, KeyFound, KeyStore } from './keys.js';
export type { FromSchema } from './json-schema.js';
export type {
  CancelResponse,
  Failure,
  Metadata,
  ProgressInfo,
  Response,
  Success,
} from '../wire/messages.js';
