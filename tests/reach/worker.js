// A Cloudflare Worker: an app behind a WebSocket, and an A2A agent.
/* global WebSocketPair */
import './instances.js';
import { expose } from 'abp-bridge';
import { createTaskServer } from '@abp-bridge/a2a';
import { webSocketTransport } from 'abp-bridge/transports';
import { app } from './app.js';

const tasks = createTaskServer({ card: { name: 'Reach' }, execute() {} });

export default {
  fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === '/instances') return new Response(String(globalThis.instances));
    if (request.headers.get('upgrade') !== 'websocket') return tasks.fetch(request);
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    expose(app, { origins: [] }).accept(webSocketTransport(server));
    return new Response(null, { status: 101, webSocket: client });
  },
};
