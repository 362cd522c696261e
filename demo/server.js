/**
 * Serves the host page and the apps: the host on one site, the apps on another, each on a port of
 * its own.
 */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const file = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

/** @param {string} name */
async function bundle(name) {
  const { outputFiles } = await build({
    entryPoints: [file(name)],
    bundle: true,
    format: 'esm',
    target: 'es2022',
    write: false,
    logLevel: 'error',
  });
  return outputFiles[0].text;
}

/**
 * Listens on the port, or on a free one if that is taken.
 * @param {import('node:http').Server} server
 * @param {number} port
 * @returns {Promise<number>} the port
 */
function listen(server, port) {
  return new Promise((resolve, reject) => {
    server.once('error', (/** @type {NodeJS.ErrnoException} */ error) =>
      error.code === 'EADDRINUSE' && port ? resolve(listen(server, 0)) : reject(error),
    );
    server.listen(port, () =>
      resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port),
    );
  });
}

/** @typedef {[type: string, content: () => string | Promise<Buffer>]} Page */

/** A page in the dark colour scheme where other pages are. @type {Page} */
const NOT_FOUND = [
  'text/html; charset=utf-8',
  () =>
    '<!doctype html><html lang="en"><meta name="color-scheme" content="light dark"><title>Not found</title><p>Nothing is here: the app has left this frame.</p></html>',
];

/**
 * @param {Record<string, Page>} files by path
 * @param {() => string} policy
 * @param {boolean} [only] whether only the name 127.0.0.1 is allowed: a page of localhost would be
 *   of the apps' site
 */
function site(files, policy, only) {
  return createServer(async (request, response) => {
    const { pathname: name, search } = new URL(request.url ?? '', 'http://localhost');
    const { host = '' } = request.headers;
    if (only && host.startsWith('localhost')) {
      const location = `http://${host.replace('localhost', '127.0.0.1')}${name}${search}`;
      return response.writeHead(302, { location }).end();
    }
    const known = Object.hasOwn(files, name);
    const [type, content] = known ? files[name] : NOT_FOUND;
    return response
      .writeHead(known ? 200 : 404, { 'content-type': type, 'content-security-policy': policy() })
      .end(await content());
  });
}

/**
 * @param {number} [port] of the host; the apps take the next two
 * @returns {Promise<{ hostUrl: string, appUrl: string, close: () => void }>}
 */
export async function startServer(port = 0) {
  const [hostScript, agentsScript, appScript, worker] = await Promise.all(
    ['host.js', 'agents.js', 'app.js', 'route-worker.js'].map(bundle),
  );
  /** @type {(name: string) => Page} */
  const page = (name) => ['text/html; charset=utf-8', () => readFile(file(name))];
  /** @type {Page} */
  const style = ['text/css', () => readFile(file('style.css'))];
  /** @type {(text: string) => Page} */
  const script = (text) => ['text/javascript', () => text];
  let hostUrl = '';
  /** The origins of the apps. */
  const origins = { app: '', plain: '' };
  const common =
    "script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' blob: data:; object-src 'none'";
  const host = site(
    {
      '/': page('host.html'),
      '/host.js': script(hostScript),
      '/agents': page('agents.html'),
      '/agents.js': script(agentsScript),
      '/apps.json': ['application/json', () => JSON.stringify(origins)],
      '/style.css': style,
    },
    () => `default-src 'self'; frame-src ${origins.app} ${origins.plain}; ${common}`,
    true,
  );
  const embedded = () => `default-src 'self'; frame-ancestors ${hostUrl}; ${common}`;
  const app = site(
    {
      '/': page('app.html'),
      '/app.js': script(appScript),
      '/route-worker.js': script(worker),
      '/style.css': style,
    },
    embedded,
  );
  const plain = site(
    {
      '/': page('plain.html'),
      '/plain.js': ['text/javascript', () => readFile(file('plain.js'))],
      '/style.css': style,
    },
    embedded,
  );
  const hostPort = await listen(host, port);
  hostUrl = `http://127.0.0.1:${hostPort}`;
  origins.app = `http://localhost:${await listen(app, port && hostPort + 1)}`;
  origins.plain = `http://localhost:${await listen(plain, port && hostPort + 2)}`;
  return {
    hostUrl,
    appUrl: origins.app,
    close: () => [host, app, plain].forEach((server) => server.close()),
  };
}
