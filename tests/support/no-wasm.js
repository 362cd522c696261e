// node --import ./tests/support/no-wasm.js: what runs after it finds no WebAssembly, as in pages
// that forbid it.
import { once } from 'node:events';
import { createServer } from 'node:http';

// Node's own fetch is made of it and takes it when it is first used: it gets it now.
const server = createServer((_, response) => response.end()).listen(0, '127.0.0.1');
await once(server, 'listening');
await (await fetch(`http://127.0.0.1:${server.address().port}`)).text();
server.close();
server.closeAllConnections();

delete globalThis.WebAssembly;
