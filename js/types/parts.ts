/** What the shim knows of the parts that stand on it. */
import type { ConnectionOptions } from '../app/connections.js';
import type { Exposed, Interface } from '../app/expose.js';
import type { Connection } from '../app/connection.js';
import type { Entry } from '../app/registry.js';
import type { Call } from '../session/call.js';
import type { Endpoint } from '../session/endpoint.js';
import type { ObserverOptions } from '../session/observers.js';
import type { TraceListener } from './trace.js';

/** What a site says about its app. It may have further members, which are not checked. */
export interface Manifest {
  /** The protocol's version. */
  abp: string;
  app: {
    id: string;
    name: string;
    version: string;
    description?: string;
    homepage?: string;
    icon?: string;
    support?: string;
  };
  capabilities: {
    name: string;
    description?: string;
    inputSchema?: object;
    outputSchema?: object;
    experimental?: boolean;
    deprecated?: boolean;
    requirements?: { type: string; description: string; resolution?: string }[];
  }[];
}

/** Makes events of what it observes. */
export interface Tracing {
  /** Calls a listener with each event from now on, until what it returns is called. */
  add(listener: TraceListener): () => void;
  /** Observes an endpoint if somebody listens. */
  follow(endpoint: Endpoint): void;
}

/** What an app remembers for agents that come back, and the results of calls that have a key. */
export interface Memory {
  /**
   * Opens the app's store of keys, and tells what agents are told of it. It resolves when it is
   * open, or not waited for any more.
   */
  open(tell: (named: { id: string; rememberFor: number }) => void): Promise<void>;
  /** Keeps the calls of a connection that has ended. */
  add(connection: Connection): void;
  /** Keeps what the handler of a call said of its work. */
  keep(endpoint: Endpoint, callId: string, said: { report?: unknown; progress?: object }): void;
  /**
   * Answers an agent that asks what became of a call, or runs a call that has a key, unless it has
   * run.
   */
  recall(connection: Connection, call: Call, run: () => unknown): unknown;
  close(): void;
}

/** What the doors fill in. Each function without params loads a part. */
export interface Parts {
  /**
   * Puts JSON Schemas in place of a capability's schemas, by which it is checked; throws unless
   * agents can be told of it.
   */
  describe(name: string, entry: Entry, shown: readonly (keyof Entry)[]): void;
  /** Throws unless a value can stand in a handshake. */
  requireJson(what: string, value: unknown, path: string): void;
  trace(): Promise<{
    Tracing: new (options: ObserverOptions, endpoints: () => Endpoint[]) => Tracing;
  }>;
  /** `store` is the app's own store of keys. */
  memory(): Promise<{
    Memory: new (connections: ReadonlySet<Connection>, rememberFor?: number, store?: any) => Memory;
  }>;
  foreign(): Promise<{
    /** Puts what it can do in the place of the registry, in what connections are given. */
    serveForeign(abp: Interface, exposed: Exposed, options: ConnectionOptions): void;
  }>;
  manifest(): Promise<{
    manifestOf(definition: { app: Manifest['app']; capabilities: object }): Manifest;
  }>;
}
