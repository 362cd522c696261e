/** Who may speak to a server of the gateway's: whoever has the token, from no page but those that were named. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { UserError, usageError } from './errors.js';

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

/** @param {string} text */
const digest = (text) => createHash('sha256').update(text).digest();

/** @typedef {{ host: string, port: number, text: string }} Address */

/** @param {import('node:http').Server} server @param {string} where `HOST:PORT` or `PORT` @returns {Promise<Address>} */
export async function listenOn(server, where) {
  const [, bracketed, plain, digits] = /^(?:(?:\[(.+)\]|([^:]+)):)?(\d+)$/.exec(where) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 65_535) {
    throw usageError(
      `--http takes HOST:PORT, such as 127.0.0.1:8808, not ${JSON.stringify(where)}`,
    );
  }
  const host = bracketed ?? plain ?? '127.0.0.1';
  server.listen(port, host);
  await once(server, 'listening').catch((error) => {
    throw new UserError(`${where} cannot be used: ${error.message}. Choose another port`);
  });
  const bound = /** @type {import('node:net').AddressInfo} */ (server.address()).port;
  return { host, port: bound, text: `${host.includes(':') ? `[${host}]` : host}:${bound}` };
}

/** @param {{ token?: string, 'allow-origin'?: string[], 'allow-host'?: string[] }} values */
export function createGuard(values) {
  const given = values.token ?? process.env.ABP_GATEWAY_TOKEN;
  if (given === '') throw usageError('--token must not be empty');
  const token = given ?? randomBytes(24).toString('base64url');
  const wanted = digest(token);
  const origins = new Set(values['allow-origin']);
  /** @type {Set<string>} */
  let hosts = new Set();
  return {
    token,
    madeToken: given === undefined,
    /** @param {Address} address */
    listeningOn({ host, port, text }) {
      const names = LOOPBACK.has(host) ? ['127.0.0.1', '[::1]', 'localhost'] : [];
      const allowed = values['allow-host'] ?? [];
      hosts = new Set([
        ...[text, ...allowed],
        ...[...names, ...allowed].map((name) => `${name}:${port}`),
      ]);
    },
    /**
     * Lets the pages that were named read what they are answered.
     * @param {import('node:http').IncomingMessage} request
     * @param {import('node:http').ServerResponse} response
     * @returns {boolean} whether this was a browser's question whether it may ask, which is answered
     */
    allowPage({ method, headers }, response) {
      const { host = '', origin } = headers;
      if (!origin || !origins.has(origin) || !hosts.has(host)) return false;
      response.setHeader('access-control-allow-origin', origin);
      response.setHeader('access-control-expose-headers', 'mcp-session-id, www-authenticate');
      response.setHeader('vary', 'origin');
      if (method !== 'OPTIONS') return false;
      const wanted = headers['access-control-request-headers'];
      response.writeHead(204, {
        'access-control-allow-methods': 'GET, POST, DELETE',
        ...(wanted && { 'access-control-allow-headers': wanted }),
        'access-control-allow-private-network': 'true',
      });
      response.end();
      return true;
    },
    /**
     * @param {import('node:http').IncomingMessage} request
     * @returns {{ status: number, message: string, headers?: Record<string, string> } | undefined}
     */
    problemWith({ headers }) {
      // A name that was rebound to this machine is no way in.
      if (!hosts.has(headers.host ?? '')) return { status: 403, message: 'Host not allowed' };
      const { origin } = headers;
      if (origin !== undefined && !origins.has(origin)) {
        return { status: 403, message: 'Origin not allowed' };
      }
      const [, shown = ''] = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
      if (timingSafeEqual(digest(shown), wanted)) return undefined;
      const challenge = { 'www-authenticate': 'Bearer' };
      return { status: 401, message: 'Authorization: Bearer TOKEN is missing', headers: challenge };
    },
  };
}
