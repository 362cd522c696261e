// What the samples use of NATS's packages, which are installed only where the tests with real
// servers run.
declare module '@nats-io/jetstream' {
  export const jetstream: unknown;
  export const jetstreamManager: unknown;
}
declare module '@nats-io/transport-node' {
  export function connect(options: {
    servers: string | string[];
    maxReconnectAttempts?: number;
  }): Promise<{ close(): Promise<void> }>;
}
