// A realm that is patched before or after this library is loaded there. It has apps, and agents
// that say what they were told.
import { parentPort, workerData } from 'node:worker_threads';
import { CAPABILITIES, outcomesOf } from '../patched.js';
import { AFTER, PATCHES } from '../patches.js';

const { name, when, appPorts, agentPorts } = workerData;
const patch = PATCHES[name] ?? AFTER[name];
if (when === 'before') patch();
const { connect, expose } = await import('../../../parts/main/index.js');
if (when === 'after') patch();
const app = { id: 'a.b', name: 'A', version: '1' };
for (const port of appPorts) expose({ app, capabilities: CAPABILITIES }, { port });
for (const [upgrade, port] of Object.entries(agentPorts))
  parentPort.postMessage(await outcomesOf(connect, port, { upgrade }));
