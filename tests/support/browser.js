/** A real Chromium, and pages on two sites: the host on http://127.0.0.1:A, the app on http://localhost:B. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = fileURLToPath(new URL('../../', import.meta.url));
const TYPES = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.html': 'text/html' };

/** Serves the repository, on one port. Folders of a page are `?` free: /tests/browser/pages/host.html */
export function serve() {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const path = join(root, normalize(decodeURIComponent(pathname)));
    if (!path.startsWith(root) || !existsSync(path) || !TYPES[extname(path)]) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      'content-type': TYPES[extname(path)],
      'cache-control': 'max-age=600',
      // A sandboxed frame's modules are fetched from the origin "null".
      'access-control-allow-origin': '*',
      'content-security-policy':
        "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval' http://localhost:* http://*.localhost:*",
    });
    response.end(readFileSync(path));
  });
  return new Promise((resolve) => {
    server.listen(0, () => resolve({ port: server.address().port, close: () => server.close() }));
  });
}

/** @param {import('playwright-core').LaunchOptions} [more] */
export function launch(more = {}) {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  return chromium.launch({
    executablePath,
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
      ...['--disable-background-networking', '--disable-component-update'],
      ...['--site-per-process', ...(more.args ?? [])],
    ],
    ...more,
  });
}

/** A browser with both sites up; `close` ends it all. */
export async function sites() {
  const [host, app, browser] = await Promise.all([serve(), serve(), launch()]);
  const hostOrigin = `http://127.0.0.1:${host.port}`;
  const appOrigin = `http://localhost:${app.port}`;
  return {
    browser,
    hostOrigin,
    appOrigin,
    hostUrl: `${hostOrigin}/tests/browser/pages/host.html`,
    /** @param {Record<string, unknown>} options see pages/app.js */
    appUrl: (options, origin = appOrigin) =>
      `${origin}/tests/browser/pages/app.html?${encodeURIComponent(JSON.stringify({ origins: [hostOrigin], ...options }))}`,
    /** A port of the app's server, under any name that resolves to this machine. */
    appPort: app.port,
    async close() {
      await browser.close();
      host.close();
      app.close();
    },
  };
}

/** The frame of a page whose address is `url`, once it has a document. */
export async function frameAt(page, url) {
  for (;;) {
    const frame = page.frames().find((f) => f.url() === url);
    if (frame) return frame;
    await page.waitForEvent('framenavigated');
  }
}
