/** The types of the main entry: those of its source, and all types that these use, by name. */
export * from '../index.js';
export { Client, connect } from '../../../js/agent/client.js'; // with their comments
export { Exposed, expose } from './exposed.js';
export type {
  ExposeOptions,
  ExposedApp,
  Inferred,
  ServeOptions,
  TypedCapability,
  TypedDefinition,
} from './exposed.js';
export type { CallStream } from '../../../js/session/call-stream.js';
export type { Patience, Reconnecting, Reloading } from '../../retry/retry.js';
export type { CapabilityInfo } from '../../../js/agent/capability-list.js';
export type {
  AgentOptions,
  AnyWorker,
  AttemptOptions,
  CallOptions,
  OutcomeOptions,
  ConnectOptions,
  ConnectTarget,
  FeatureName,
  Opener,
} from '../../../js/agent/client.js';
export type { Connection, Session } from '../../../js/app/connection.js';
export type {
  AppTransport,
  Definition,
  Exposed as AnyExposed,
  ExposeOptions as AnyExposeOptions,
  Interface,
  ServeOptions as AnyServeOptions,
} from '../../../js/app/expose.js';
export type {
  CallContext,
  Capability,
  Described,
  Handler,
  Implemented,
  Requirement,
} from '../../../js/app/registry.js';
export type { ErrorObject, Told } from '../../../js/common/errors.js';
export type { Token } from '../../../js/common/token.js';
export type { Limits } from '../../../js/driver/abp-core.js';
export type { Brand } from '../../../js/driver/instance.js';
export type { RequestOptions } from '../../../js/session/call.js';
export type { ObserverOptions } from '../../../js/session/observers.js';
export type { TraceEvent, TraceListener, TraceOutcome } from '../../../js/types/trace.js';
export type { Feature, MessageKind, Prepare, Transport } from '../../../js/transports/transport.js';
export type { Manifest } from '../../../js/types/parts.js';
export type {
  AnyFunction,
  CallArguments,
  CapabilitiesOf,
  ChunkOf,
  DataOf,
  IsAny,
  NameOf,
  ParamsOf,
  ResponseOf,
  Schema,
} from '../../../js/types/app.js';
export type { ErrorCode, ProtocolCode } from '../../../js/types/errors.js';
export type { CallFate, CallOutcome } from '../../../js/types/outcome.js';
export type { KeyEnded, KeyFound, KeyStore } from '../../keys/store.js';
export type { FromSchema, InputOf, OutputOf, StandardSchema } from '../../schemas/types.js';
export type {
  CancelResponse,
  Failure,
  Metadata,
  ProgressInfo,
  Response,
  Success,
} from '../../../js/wire/messages.js';
