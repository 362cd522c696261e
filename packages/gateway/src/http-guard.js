/** HTTP for clients that have the token, and for pages of the named origins only. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { UserError, log, seconds, usageError } from './errors.js';
import { lineOf } from './texts.js';

/**
 * Ms of silence in an answer: there are proxies that end a connection after 25 silent seconds.
 */
const DEFAULT_KEEP_ALIVE = 15_000;
const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

/**
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('node:http').ServerResponse} ServerResponse
 * @typedef {{ status: number, message: string, headers?: Record<string, string> }} Problem
 */

/** @param {string} text */
const digest = (text) => createHash('sha256').update(text).digest();

/**
 * Ms between signs of life in an answer.
 * @param {import('./commands.js').Values} values of the options
 */
export const keepAliveOf = (values) =>
  seconds(values['keep-alive'], 'keep-alive') ?? DEFAULT_KEEP_ALIVE;

/**
 * @param {string} where `HOST:PORT` or `PORT`
 * @param {import('node:http').Server} server
 */
async function listenOn(where, server) {
  const [, bracketed, plain, digits] = /^(?:(?:\[(.+)\]|([^:]+)):)?(\d+)$/.exec(where) ?? [];
  if (digits === undefined || Number(digits) > 65_535) {
    throw usageError(
      `--http takes HOST:PORT, such as 127.0.0.1:8808, not ${JSON.stringify(where)}`,
    );
  }
  const host = bracketed ?? plain ?? '127.0.0.1';
  server.listen(Number(digits), host);
  await once(server, 'listening').catch((error) => {
    throw new UserError(`${where} cannot be used: ${error.message}. Choose another port`);
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { host, port, address: `${host.includes(':') ? `[${host}]` : host}:${port}` };
}

/**
 * @param {{ what: string, where: string, path: string }} service the name, the address and the path
 *   of the service
 * @param {import('./commands.js').Values} values of the options
 * @param {(request: IncomingMessage, response: ServerResponse, problem?: Problem) => void} handle
 *   answers a request, or reports the given problem
 */
export async function serveGuarded({ what, where, path }, values, handle) {
  const given = values.token ?? process.env.ABP_GATEWAY_TOKEN;
  if (given === '') throw usageError('--token must not be empty');
  const token = given ?? randomBytes(24).toString('base64url');
  const wanted = digest(token);
  const origins = new Set(values['allow-origin']);
  /** @type {Set<string>} */
  const hosts = new Set(values['allow-host']);

  const answersTo = () =>
    `This server answers to ${[...hosts].join(', ')}; --allow-host NAME allows another name`;

  const server = createServer((request, response) => {
    const { host = '', origin, authorization = '', ...headers } = request.headers;
    const respond = (/** @type {Problem} */ problem) => handle(request, response, problem);
    // A host name that was rebound to this machine is rejected.
    if (!hosts.has(host)) {
      const message = `Host ${lineOf(host)} is not allowed. ${answersTo()}`;
      return respond({ status: 403, message });
    }
    if (origin !== undefined) {
      if (!origins.has(origin)) {
        const message = `Origin ${lineOf(origin)} is not allowed: --allow-origin allows one`;
        return respond({ status: 403, message });
      }
      // Pages of named origins may read the answers.
      response.setHeader('access-control-allow-origin', origin);
      response.setHeader('access-control-expose-headers', 'mcp-session-id, www-authenticate');
      response.setHeader('vary', 'origin');
      if (request.method === 'OPTIONS') {
        const asked = headers['access-control-request-headers'];
        response.writeHead(204, {
          'access-control-allow-methods': 'GET, POST, DELETE',
          ...(asked && { 'access-control-allow-headers': asked }),
          'access-control-allow-private-network': 'true',
        });
        return void response.end();
      }
    }
    const [, shown = ''] = /^bearer +(\S+) *$/i.exec(authorization) ?? [];
    if (timingSafeEqual(digest(shown), wanted)) return handle(request, response);
    const challenge = { 'www-authenticate': 'Bearer' };
    respond({ status: 401, message: 'Authorization: Bearer TOKEN is missing', headers: challenge });
  });
  const { host, port, address } = await listenOn(where, server);
  const names = LOOPBACK.has(host) ? ['127.0.0.1', '[::1]', 'localhost'] : [];
  for (const name of [...names, ...hosts]) hosts.add(`${name}:${port}`);
  hosts.add(address);
  log(`serves ${what} at http://${address}${path}`);
  log(answersTo());
  if (given === undefined) log(`clients must send: Authorization: Bearer ${token}`);
  return server;
}
