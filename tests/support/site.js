/**
 * An address at which an app is, and can be restarted: what a server with one URL is to its agents.
 */
import { once } from 'node:events';
import { WebSocket, WebSocketServer } from 'ws';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { AGENT, APP, closeAfter } from './pair.js';

/** A promise, and what settles it. */
export function deferred() {
  const it = {};
  it.promise = new Promise((resolve) => (it.resolve = resolve));
  return it;
}

/** A handler whose ends the test decides: `calls` has what each got, and `end`. */
export function held() {
  const calls = [];
  const began = [];
  const handler = (params, context) => {
    const call = { params, context, end: deferred() };
    calls.push(call);
    began.shift()?.(call);
    return call.end.promise.then((act) => act(context));
  };
  /** Resolves with the next call. */
  const next = () => new Promise((resolve) => began.push(resolve));
  return { handler, calls, next };
}

/** The ways to a site: each opens both ends of a new line. */
export const LINES = {
  async ports() {
    const { port1, port2 } = new MessageChannel();
    closeAfter(() => port1.close());
    return { app: portTransport(port1), agent: port2, cut: () => port1.close() };
  },
  async sockets() {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    closeAfter(() => server.close());
    await once(server, 'listening');
    const socket = new WebSocket(`ws://127.0.0.1:${server.address().port}`);
    const [[own]] = await Promise.all([once(server, 'connection'), once(socket, 'open')]);
    closeAfter(() => own.terminate());
    return {
      app: webSocketTransport(own),
      agent: webSocketTransport(socket),
      cut: () => own.terminate(),
    };
  },
};

/**
 * @param {object} definition
 * @param {Record<string, any>} definition.capabilities
 * @param {any} [definition.options] of `expose`
 * @param {keyof typeof LINES} [definition.line]
 */
export function siteOf({ capabilities, options, line = 'ports' }) {
  const site = {
    app: undefined,
    /** Says what the app answers a handshake; a test may change it. */
    reads: (message) => message,
    /** Holds new lines back, if it is a promise. */
    held: undefined,
    last: undefined,
    start(more = {}) {
      site.app = expose({ app: APP, capabilities }, { origins: [], ...options, ...more });
      const { app } = site;
      closeAfter(() => app.close());
      return app;
    },
    /** The line breaks. */
    cut: () => site.last.cut(),
    /** The app's process ends, and another begins: nothing of its memory is left. */
    restart(more) {
      site.cut();
      return site.start(more);
    },
    async open() {
      await site.held;
      const made = await LINES[line]();
      site.last = made;
      const { app } = made;
      const post = app.post.bind(app);
      app.post = (message, ...rest) =>
        post(message?.type === 'initialize-result' ? site.reads(message) : message, ...rest);
      site.app.accept(app);
      return made.agent;
    },
    async client(more) {
      const client = await connect(site.open, { agent: AGENT, ...more });
      closeAfter(() => client.close());
      return client;
    },
  };
  site.start();
  return site;
}
