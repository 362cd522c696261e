// An app in a thread. Its handlers write to the database by themselves; see ways.js.
import { once } from 'node:events';
import { workerData } from 'node:worker_threads';
import { expose } from '../../js/index.js';
import { appender } from './database.js';
import { handlersOf, turn } from './work.js';

const { path, limits, control } = workerData;
const { write } = appender(path);
const released = once(control, 'message');
control.unref();
const place = {
  write,
  writeElsewhere: async (row) => {
    await turn();
    write(row);
  },
  released: () => released,
};
const app = { id: 'a.b', name: 'A', version: '1' };
expose({ app, capabilities: handlersOf(place) }, { limits });
