// Pages change what all objects, lists and promises do, before or after this library is loaded.
// What is sent is what was given all the same, and nobody waits for ever. An app and an agent are
// tried in a realm of their own, with others that no page has changed.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { connect, expose } from '../../parts/main/index.js';
import { APP, closeAfter } from '../support/pair.js';
import { CAPABILITIES, outcomesOf } from '../support/patched.js';
import { AFTER, PATCHES } from '../support/patches.js';

const WORKER = new URL('../support/workers/patched.js', import.meta.url);
const UPGRADES = ['frames', 'none'];
/** The agent's end of a port to an app of this realm. */
function appHere() {
  const { port1, port2 } = new MessageChannel();
  const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { port: port1 });
  closeAfter(() => (exposed.close(), port1.close(), port2.close()));
  return port2;
}
/** What an agent is told by each of `UPGRADES`. */
let expected;
before(async () => {
  expected = await Promise.all(
    UPGRADES.map((upgrade) => outcomesOf(connect, appHere(), { upgrade })),
  );
});

for (const [name, when] of [
  ...Object.keys(PATCHES).flatMap((name) => [
    [name, 'before'],
    [name, 'after'],
  ]),
  ...Object.keys(AFTER).map((name) => [name, 'after']),
])
  test(`where a page has ${name}, ${when} the library was loaded`, async () => {
    const channels = UPGRADES.map(() => new MessageChannel());
    const appPorts = channels.map(({ port1 }) => port1);
    const agentPorts = Object.fromEntries(UPGRADES.map((upgrade) => [upgrade, appHere()]));
    const transferList = [...appPorts, ...Object.values(agentPorts)];
    const workerData = { name, when, appPorts, agentPorts };
    const worker = new Worker(WORKER, { workerData, transferList });
    closeAfter(() => worker.terminate());
    const told = [];
    const heard = new Promise((resolve, reject) => {
      worker.on('message', (each) => told.push(each) === UPGRADES.length && resolve());
      worker.on('error', reject);
    });
    for (const [i, upgrade] of UPGRADES.entries()) {
      const here = await outcomesOf(connect, channels[i].port2, { upgrade });
      assert.deepEqual(here, expected[i], `an app there, ${upgrade}`);
    }
    await heard;
    assert.deepEqual(told, expected, 'an agent there');
  });
