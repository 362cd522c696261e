// An app in a process of its own: it pays, and writes down what it has done. Its keys are in a
// file. Where it is to end, it ends itself as a power cut would.
import { appendFileSync, existsSync } from 'node:fs';
import { WebSocketServer } from 'ws';
import { expose } from '../../parts/main/index.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { sqliteKeys } from '../../parts/keys/index.js';

const [, , path, log, point = ''] = process.argv;
/** @param {string} at */
const here = (at) => {
  if (at === point) process.kill(process.pid, 'SIGKILL');
};
const store = sqliteKeys(path);
const keys = {
  open: () => store.open(),
  async begin(key, digest) {
    here('before it begins');
    const found = await store.begin(key, digest);
    here('once it is written that it begins');
    return found;
  },
  async end(key, ended) {
    here('once its handler has returned');
    await store.end(key, ended);
    here('once it is written what became of it');
  },
  close: () => store.close(),
};
const app = expose(
  {
    app: { id: 'keys.app', name: 'Keys', version: '1' },
    capabilities: {
      async pay({ order, until }) {
        here('before its effect');
        appendFileSync(log, `${order}\n`);
        here('after its effect');
        // It is told when it may end, by a file.
        while (until && !existsSync(until)) await new Promise((resolve) => setTimeout(resolve, 5));
        return { paid: order };
      },
    },
  },
  { origins: [], keys },
);
const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
server.on('connection', (socket) => app.accept(webSocketTransport(socket)));
server.on('listening', () => process.send(server.address().port));
process.on('disconnect', () => process.exit());
