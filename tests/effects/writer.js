// The thread that writes for others. See database.js.
import { parentPort, workerData } from 'node:worker_threads';
import { appender } from './database.js';

const { write } = appender(workerData);
parentPort?.on('message', (row) => {
  write(row);
  parentPort?.postMessage(true);
});
