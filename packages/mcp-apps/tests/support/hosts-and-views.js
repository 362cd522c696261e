/** Hosts, views and agents of views without a browser, and a log of their messages. */
import { connect, expose } from 'abp-bridge';
import { createHost, createView, toolsOf } from '../../src/index.js';
import { gate, linkedTransports, recording } from '../../../rpc/tests/support/rpc.js';

export const AGENT = { name: 'agent', version: '1' };

export const HOST = { name: 'host', version: '1' };

export const turn = () => new Promise(setImmediate);

/** Removes our extensions from the handshake, so that neither side reports outcomes. */
export function withoutOutcomes(transport) {
  const { post } = transport;
  transport.post = (message, ...more) => {
    const { params, result } = message;
    for (const said of [params?.appCapabilities, result?.hostCapabilities])
      if (said) delete said.experimental;
    post.call(transport, message, ...more);
  };
  return transport;
}

/** A host and its view, which are closed with the test, and the messages of each. */
export async function hostAndView(
  t,
  { reportsOutcomes = true, host: hostOptions = {}, view: viewOptions = {} },
) {
  const [there, here] = linkedTransports();
  if (!reportsOutcomes) for (const end of [there, here]) withoutOutcomes(end);
  const log = [];
  const [host, view] = await Promise.all([
    createHost(recording(there, log, 'host'), { host: HOST, ...hostOptions }),
    createView({
      app: { name: 'View', version: '1' },
      transport: recording(here, log, 'view'),
      ...viewOptions,
    }),
  ]);
  t.after(() => {
    view.close();
    return host.close({ timeout: 1 });
  });
  return { host, view, sent: (who) => log.filter(({ dir }) => dir === who).map(({ msg }) => msg) };
}

/** An app, its tools as those of a view, and an agent of them. */
export async function agentOfView(t, capabilities, { reportsOutcomes = true, definition } = {}) {
  const app = { id: 'view.app', name: 'View', version: '1' };
  const exposed = expose(definition ?? { app, capabilities }, { origins: [] });
  t.after(() => exposed.close());
  const both = await hostAndView(t, { reportsOutcomes, view: { tools: toolsOf(exposed) } });
  const changes = [];
  const heard = gate();
  const client = await connect(() => both.host.transport(), {
    agent: AGENT,
    onCapabilitiesChanged: (change) => (changes.push(change), heard.open()),
  });
  t.after(() => client.close());
  return { ...both, client, exposed, changes, heard };
}
