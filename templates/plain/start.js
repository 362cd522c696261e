// npm start: serves the page of the agent and the app that it embeds, each from an origin of its own.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname } from 'node:path';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript' };
/** The library's files for pages without a bundler. */
const library = new URL('.', import.meta.resolve('abp-bridge/page'));

/** Serves a folder, and the library under /abp-bridge/. */
async function serve(folder, port) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const path = pathname.endsWith('/') ? `${pathname}index.html` : pathname;
    const file = path.startsWith('/abp-bridge/')
      ? new URL(path.slice('/abp-bridge/'.length), library)
      : new URL(folder + path, import.meta.url);
    try {
      const content = await readFile(file);
      response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' });
      response.end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  server.listen(port, 'localhost');
  await once(server, 'listening').catch((error) => {
    console.error(
      error.code === 'EADDRINUSE'
        ? `Port ${port} is in use: end the program that uses it, or change the port in start.js, app/app.js and host/host.js`
        : error,
    );
    process.exit(1);
  });
  console.log(`The ${folder} is at http://localhost:${port}/`);
}

await serve('app', 8081);
await serve('host', 8080);
