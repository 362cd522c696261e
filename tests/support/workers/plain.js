// An app in a worker of Node's that shares no code with this library.
import { parentPort, workerData } from 'node:worker_threads';
import { plainApp, portChannel } from '../../plain/plain.js';
import { AppDriver } from '../drivers.js';

/** How a test tells it what to do, past the bridge. */
const control = new BroadcastChannel(workerData.control);
const driver = new AppDriver((line) => control.postMessage({ log: line }));
control.onmessage = ({ data }) => data.do && driver.do(...data.do);

plainApp(portChannel(parentPort), driver.handlers);
