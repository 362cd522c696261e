/**
 * An app behind a WebSocket, in the test's own process: what it hears is seen at once, and no
 * browser is needed.
 */
import { once } from 'node:events';
import { expose } from 'abp-bridge';
import { webSocketTransport } from 'abp-bridge/transports';
import { WebSocketServer } from 'ws';

/**
 * @param {Record<string, any>} capabilities
 * @param {{ limits?: object, port?: number }} [options]
 */
export async function startSocketApp(capabilities, { limits, port = 0 } = {}) {
  const server = new WebSocketServer({ port, host: '127.0.0.1' });
  await once(server, 'listening');
  const app = expose(
    { app: { id: 'ws', name: 'Socket app', version: '1' }, capabilities },
    { origins: [], limits },
  );
  server.on('connection', (socket) => app.accept(webSocketTransport(socket)));
  const { port: bound } = server.address();
  return {
    app,
    port: bound,
    url: `ws://127.0.0.1:${bound}/`,
    /** Ends all connections; the app goes on. */
    cut: () => server.clients.forEach((socket) => socket.terminate()),
    close() {
      app.close();
      server.close();
      server.clients.forEach((socket) => socket.terminate());
    },
    closed: once(server, 'close'),
  };
}
