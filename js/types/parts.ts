/** Types of the parts that the shim uses without importing them. */
import type { ConnectionOptions } from '../app/connections.js';
import type { Exposed, Interface } from '../app/expose.js';
import type { Connection } from '../app/connection.js';
import type { Entry } from '../app/registry.js';
import type { Call } from '../session/call.js';
import type { Endpoint } from '../session/endpoint.js';
import type { ObserverOptions } from '../session/observers.js';
import type { TraceListener } from './trace.js';

/** A site's description of its app. It may have further members, which are not checked. */
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

/** Makes trace events from endpoints. */
export interface Tracing {
  /** Calls a listener with each event from now on. Returns a function that removes it. */
  add(listener: TraceListener): () => void;
  /** Observes an endpoint if there is a listener. */
  follow(endpoint: Endpoint): void;
}

/**
 * The memory of an app: its calls, for agents that come back, and the results of calls with a key.
 */
export interface Memory {
  /**
   * Opens the app's store of keys, and passes its name and period to `tell`, which announces them
   * to agents. Resolves when the store is open, or when it has taken too long.
   */
  open(tell: (named: { id: string; rememberFor: number }) => void): Promise<void>;
  /** Keeps the calls of a connection that has ended. */
  add(connection: Connection): void;
  /** Keeps the last report and progress of a call's handler. */
  keep(endpoint: Endpoint, callId: string, said: { report?: unknown; progress?: object }): void;
  /**
   * Answers an agent that asks about the outcome of a call. Runs a call with a key unless it has
   * run.
   */
  recall(connection: Connection, call: Call, run: () => unknown): unknown;
  close(): void;
}

/**
 * The functions that the entries of the package provide. Each function without params loads a part.
 */
export interface Parts {
  /**
   * Replaces a capability's schemas by JSON Schemas and by the functions that check them. Throws if
   * the capability cannot be described to agents.
   */
  describe(name: string, entry: Entry, shown: readonly (keyof Entry)[]): void;
  /** Throws unless a value can be sent in a handshake. */
  requireJson(what: string, value: unknown, path: string): void;
  trace(): Promise<{
    Tracing: new (options: ObserverOptions, endpoints: () => Endpoint[]) => Tracing;
  }>;
  /** `store` is the app's own store of keys. */
  memory(): Promise<{
    Memory: new (connections: ReadonlySet<Connection>, rememberFor?: number, store?: any) => Memory;
  }>;
  foreign(): Promise<{
    /**
     * Replaces the registry, in the options of connections, by the capabilities of the app's own
     * `window.abp`.
     */
    serveForeign(abp: Interface, exposed: Exposed, options: ConnectionOptions): void;
  }>;
  manifest(): Promise<{
    manifestOf(definition: { app: Manifest['app']; capabilities: object }): Manifest;
  }>;
}
