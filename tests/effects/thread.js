// An app in a thread, or the tasks of a pool. Their handlers write to the database by themselves;
// see connections.js.
import { once } from 'node:events';
import { threadId, workerData } from 'node:worker_threads';
import { expose } from '../../parts/main/index.js';
import { serve } from '../../parts/workers/pool.js';
import { APP } from './calls.js';
import { appender } from './database.js';
import { handlersOf, turn, withChecks } from './work.js';

const { path, limits, control, pool } = workerData;
const { write } = appender(path);
const released = once(control, 'message');
control.unref();
const place = {
  write: (row) => write({ ...row, thread: threadId }),
  writeElsewhere: async (row) => {
    await turn();
    write(row);
  },
  released: () => released,
  ...(pool && { die: () => process.exit() }),
};
const handlers = handlersOf(place);
if (pool) serve(handlers);
else expose({ app: APP, capabilities: withChecks(handlers) }, { limits });
