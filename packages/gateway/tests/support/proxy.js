/** A proxy on this machine, between clients and a gateway over HTTP. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** How long a connection may be silent, in ms, as it is with proxies on the way to a cloud. */
const MAX_SILENCE = 25_000;

export async function startProxy() {
  /** @type {Set<import('node:net').Socket>} */
  const upstreams = new Set();
  const waiting = new Set();
  let to = 0;
  let holds = false;
  const server = createServer((client) => {
    const upstream = connect({ port: to, host: '127.0.0.1' });
    upstreams.add(upstream);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ]) {
      socket.on('error', () => {});
      socket.on('close', () => other.destroy());
      socket.setTimeout(MAX_SILENCE, () => socket.destroy());
    }
    upstream.on('close', () => upstreams.delete(upstream));
    client.on('data', (chunk) => void upstream.write(chunk));
    // What is not read stays in the system: who closes the connection then has not read it.
    if (holds) return void upstream.pause();
    upstream.on('data', (chunk) => {
      client.write(chunk);
      for (const look of waiting) look(`${chunk}`);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}/`,
    /**
     * Where the gateway listens.
     * @param {string} url
     */
    leadTo: (url) => void (to = Number(new URL(url).port)),
    /** From now on, nothing that the gateway says is passed on by new connections. */
    hold: () => void (holds = true),
    pass: () => void (holds = false),
    /** Ends every connection. */
    cut: () => upstreams.forEach((each) => each.destroy()),
    /**
     * Resolves when so many pieces have come from the gateway that look like this.
     * @param {RegExp} pattern
     * @param {number} count
     */
    heard: (pattern, count) =>
      new Promise((resolve) => {
        const look = (text) => {
          if (!pattern.test(text) || --count > 0) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
      }),
    close() {
      server.close();
      upstreams.forEach((each) => each.destroy());
    },
  };
}
