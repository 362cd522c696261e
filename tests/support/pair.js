/** An agent and an app, both of this library and in one process. */
import { after, afterEach } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { connectPage } from '../../packages/automation/src/index.js';
import { drivenPage } from '../../packages/automation/tests/support/driven-page.js';

export const APP = { id: 'a.b', name: 'A', version: '1' };
export const AGENT = { name: 'a', version: '1' };

const closers = [];
/**
 * Calls it after the test; what is opened last is closed first.
 * @param {() => unknown} close
 */
export const closeAfter = (close) => void closers.push(close);
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

/** For tests that wait for the timer of an app, which does not keep the process alive. */
export function keepAlive() {
  const alive = setInterval(() => {}, 2 ** 30);
  after(() => clearInterval(alive));
}

/**
 * Opens both sides, which are closed after the test.
 * @param {Record<string, any>} capabilities
 * @param {object} [way]
 * @param {() => any} [way.ends] makes both ends of a transport (see contracts/channels.js); without
 *   it, a MessageChannel
 * @param {boolean} [way.driven] the app is in a page that is driven
 * @param {any} [way.app] options of `expose`
 * @param {any} [way.agent] options of `connect`
 * @param {'none' | 'port' | 'frames'} [way.upgrade] of both
 */
export async function openPair(capabilities, { ends, driven, app, agent, upgrade } = {}) {
  const definition = { app: APP, capabilities };
  // Whether frames are used within a port is up to the agent.
  const ofApp = upgrade ? { upgrade: upgrade === 'port' ? 'frames' : upgrade, ...app } : app;
  let exposed;
  let target;
  if (driven) {
    exposed = expose(definition, { origins: [], ...ofApp });
    target = drivenPage({ abp: exposed.abp });
  } else if (ends) {
    const [agentEnd, appEnd] = await ends();
    exposed = expose(definition, ofApp);
    exposed.accept(appEnd.transport());
    target = agentEnd.transport;
    closeAfter(() => agentEnd.close());
    closeAfter(() => appEnd.close());
  } else {
    const { port1, port2 } = new MessageChannel();
    exposed = expose(definition, { port: port1, ...ofApp });
    target = port2;
    closeAfter(() => port1.close());
    closeAfter(() => port2.close());
  }
  closeAfter(() => exposed.close());
  const options = { agent: AGENT, timeout: 120_000, ...(upgrade && { upgrade }), ...agent };
  const client = await (driven ? connectPage : connect)(target, options);
  closeAfter(() => client.close());
  return { client, exposed };
}
