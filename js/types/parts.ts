/** What the shim knows of the parts that stand on it. */
import type { Exposed, Interface } from '../app/expose.js';
import type { Capabilities } from '../app/registry.js';
import type { Endpoint } from '../session/endpoint.js';
import type { Call } from '../session/call.js';
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

/** What an app of others' making can do. Its session lasts as long as an agent has one. */
export type ForeignCapabilities = Capabilities & { end(reason?: string): Promise<void> };

/** A call of such an app, which is told what becomes of its cancel. */
export type ForeignCall = Pick<Call, 'onStop' | 'stopAnswered'>;

/** Makes events of what it observes. */
export interface Tracing {
  /** Calls a listener with each event from now on, until what it returns is called. */
  add(listener: TraceListener): () => void;
  /** Observes an endpoint if somebody listens. */
  follow(endpoint: Endpoint): void;
}

/** Loads each part. */
export interface Parts {
  trace(): Promise<{
    Tracing: new (options: ObserverOptions, endpoints: () => Endpoint[]) => Tracing;
  }>;
  foreign(): Promise<{
    foreignCapabilities(abp: Interface, exposed: Exposed): ForeignCapabilities;
  }>;
  manifest(): Promise<{
    manifestOf(definition: { app: Manifest['app']; capabilities: object }): Manifest;
  }>;
}
