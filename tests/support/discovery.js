/** What tests of discovery share: a server, and what it answers. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, afterEach, before } from 'node:test';
import { discover } from '../../parts/discovery/discover.js';

export const MiB = 1 << 20;

export const LINK = '<link rel="abp-manifest" href="/abp.json">';

export const MANIFEST = {
  abp: '0.1',
  app: { id: 'example.writer', name: 'Writer', version: '1.0' },
  capabilities: [
    { name: 'export.pdf', description: 'Makes a PDF', inputSchema: { type: 'object' } },
  ],
};

export const LOCAL = { allowPrivate: true };

/**
 * A server on this machine. `routes` are what it answers, by path: a text, or a function of request
 * and response. `seen` is what it saw: a path, and a promise of the bytes that its connection took
 * until it was closed.
 * @type {{ routes: Record<string, any>, seen: any[], server?: any, origin?: string }}
 */
export const web = { routes: {}, seen: [] };

/** Starts it, for the tests of a file. */
export function useWeb() {
  before(async () => {
    web.server = createServer((request, response) => {
      const { socket } = request;
      const closed = new Promise((resolve) =>
        socket.once('close', () => resolve(socket.bytesWritten)),
      );
      web.seen.push({ path: request.url, host: request.headers.host, closed });
      const route = web.routes[request.url];
      if (typeof route === 'function') return route(response, request);
      if (route === undefined) return response.writeHead(404).end('<head>');
      const type = request.url.endsWith('.json') ? 'application/json' : 'text/html';
      response.writeHead(200, { 'content-type': type }).end(route);
    });
    await new Promise((resolve) => web.server.listen(0, '0.0.0.0', resolve));
    web.origin = `http://127.0.0.1:${web.server.address().port}`;
  });
  after(() => {
    web.server.close();
    web.server.closeAllConnections();
  });
  afterEach(() => {
    web.routes = {};
    web.seen = [];
  });
}

export const paths = () => web.seen.map(({ path }) => path);

export const sends = (headers, body) => (response) => response.writeHead(200, headers).end(body);

export const json = (body) => sends({ 'content-type': 'application/json' }, body);

export const redirect =
  (location, status = 302) =>
  (response) =>
    response.writeHead(status, { location }).end('the body of a redirect is not read');

/** Discovers the page `/` with these routes. */
export async function find(more, options) {
  web.routes = {
    '/': `<!doctype html><html><head>${LINK}</head>`,
    '/abp.json': JSON.stringify(MANIFEST),
    ...more,
  };
  return discover(`${web.origin}/`, { ...LOCAL, ...options });
}

/** The code of a discovery that found nothing, with a reason in words. */
export async function codeOf(finding) {
  const { supported, code, reason, ...rest } = await finding;
  assert.equal(supported, false);
  assert.ok(reason.length > 10 && reason.length < 500, reason);
  assert.deepEqual(rest, {});
  return code;
}
