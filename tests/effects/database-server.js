/** The database for pages, over HTTP. */
import { once } from 'node:events';
import { createServer } from 'node:http';

/**
 * A row that is posted to it stands when it is answered. A page that asks for `/released/NAME` is
 * answered when the stuck handlers of that session may go on, and one that asks for anything else
 * at once.
 * @param {import('./database.js').Database} database
 */
export async function serveDatabase(database) {
  /** @type {Map<string, Promise<unknown>>} */
  const released = new Map();
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    if (text) database.write(JSON.parse(text));
    await released.get(request.url.replace('/released/', ''));
    response.writeHead(200, { 'access-control-allow-origin': '*' }).end();
  });
  server.keepAliveTimeout = 0; // pages would meet connections that have just been closed
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /**
     * @param {string} name
     * @param {Promise<unknown>} whenReleased
     */
    hold: (name, whenReleased) => void released.set(name, whenReleased),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
