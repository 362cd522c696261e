/** Who may speak to a server of the gateway's: whoever has the token, from no page but those that were named. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { UserError, usageError } from './errors.js';

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

/** @param {string} text */
const digest = (text) => createHash('sha256').update(text).digest();

/** @typedef {{ host: string, port: number, text: string }} Address */

/**
 * @param {import('node:http').Server} server
 * @param {string} where `HOST:PORT` or `PORT`
 * @returns {Promise<Address>}
 */
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
    throw new UserError(`${where} cannot be listened on: ${error.message}. Choose another port`);
  });
  const bound = /** @type {import('node:net').AddressInfo} */ (server.address()).port;
  return { host, port: bound, text: `${host.includes(':') ? `[${host}]` : host}:${bound}` };
}

/**
 * @param {{ token?: string, 'allow-origin'?: string[] }} values
 */
export function createGuard(values) {
  const given = values.token ?? process.env.ABP_GATEWAY_TOKEN;
  if (given === '') throw usageError('--token must not be empty');
  const token = given ?? randomBytes(24).toString('base64url');
  const wanted = digest(`Bearer ${token}`);
  const origins = new Set(values['allow-origin']);
  /** @type {Set<string>} */
  let hosts = new Set();
  return {
    token,
    madeToken: given === undefined,
    /** @param {Address} address */
    listeningOn({ host, port, text }) {
      const names = LOOPBACK.has(host) ? ['127.0.0.1', '[::1]', 'localhost'] : [];
      hosts = new Set([text, ...names.map((name) => `${name}:${port}`)]);
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
      if (timingSafeEqual(digest(headers.authorization ?? ''), wanted)) return undefined;
      const challenge = { 'www-authenticate': 'Bearer' };
      return { status: 401, message: 'Authorization: Bearer TOKEN is missing', headers: challenge };
    },
  };
}
