/** The site of the test app: its page, the library, and the log that the app's handlers keep. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const TYPES = { '.js': 'text/javascript', '.html': 'text/html', '.json': 'application/json' };
/**
 * When a test has failed that waits for what never comes, in ms: later than any machine is slow.
 */
export const GIVE_UP = 180_000;
const PAGE = '/packages/gateway/tests/pages/app.html';

/** @returns what a test needs of a site of its own */
export async function startSite() {
  const lines = [];
  const waiting = new Set();
  /**
   * Answers beside the files of the repository; `cookie` came with the last request.
   * @type {Map<string, { type: string, body: string, headers?: object, cookie?: string }
   *   | { to: string }>}
   */
  const extra = new Map();
  const answer = async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    if (request.method === 'POST' && pathname === '/log') {
      lines.push(await text(request));
      response.writeHead(204).end();
      for (const look of waiting) look();
      return;
    }
    const other = extra.get(pathname);
    if (other) other.cookie = request.headers.cookie;
    if (other?.to) return void response.writeHead(302, { location: other.to }).end();
    const path = join(root, normalize(pathname));
    if (!other && (!path.startsWith(root) || !existsSync(path) || !TYPES[extname(path)])) {
      return void response.writeHead(404).end();
    }
    response.writeHead(200, {
      'content-type': other?.type ?? TYPES[extname(path)],
      'cache-control': 'max-age=600',
      ...other?.headers,
    });
    response.end(other?.body ?? readFileSync(path));
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise((resolve) => server.listen(0, resolve));
  const { port } = server.address();
  return {
    origin: `http://localhost:${port}`,
    /** The same server under another name: another origin. */
    elsewhere: `http://127.0.0.1:${port}`,
    lines,
    extra,
    /** @param {object} [options] see pages/app.js */
    url: (options = {}) =>
      `http://localhost:${port}${PAGE}?${encodeURIComponent(JSON.stringify(options))}`,
    /**
     * The first line that matches, of those that come after what was there before.
     * @param {RegExp} pattern
     * @param {number} [from] where in the log to begin
     */
    logged: (pattern, from = 0) =>
      new Promise((resolve, reject) => {
        const late = () => reject(new Error(`nothing logged ${pattern}: ${lines.slice(from)}`));
        const timer = setTimeout(late, GIVE_UP);
        const look = () => {
          const line = lines.slice(from).find((each) => pattern.test(each));
          if (line === undefined) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve(line);
        };
        waiting.add(look);
        look();
      }),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
