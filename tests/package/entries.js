// Uses each entry that is meant for pages, once: what they share must be one thing to all of them.
import { AbpError, expose, transfer } from 'abp-bridge';
import { createTaskServer } from '@abp-bridge/a2a';
import * as discovery from 'abp-bridge/discover';
import { AbpInspector } from '@abp-bridge/inspector';
import { indexedDBKeys } from 'abp-bridge/keys';
import { createHost } from '@abp-bridge/mcp-apps';
import { serveSandbox } from '@abp-bridge/mcp-apps/sandbox';
import * as pools from 'abp-bridge/pool';
import { createRecorder } from '@abp-bridge/inspector/recorder';
import { createPeer, portChannel } from '@abp-bridge/rpc';
import { callsTool, settled } from '@abp-bridge/webmcp/settled';
import { connectTools, webmcp } from '@abp-bridge/webmcp';
import { modelContext } from '@abp-bridge/webmcp/page-tools';
import { AbpError as DriverError } from 'abp-bridge/driver';
import { extensionTransport, fromOrigins, windowTransport } from 'abp-bridge/transports';

export async function entries() {
  const { port1, port2 } = new MessageChannel();
  const [asks, answers] = [port1, port2].map((port) =>
    createPeer(portChannel(port), { dialect: 'lsp' }),
  );
  answers.handle('double', ({ n }) => n * 2);
  const tasks = createTaskServer({ card: { name: 'Entries' }, execute() {} });
  const app = { id: 'entries.app', name: 'Entries', version: '1' };
  const workers = pools.pool(() => {
    throw new Error('no workers today');
  });
  const { warn } = console;
  const warned = new Promise((resolve) => (console.warn = resolve));
  const options = { origins: [], webmcp: webmcp(), orgins: [] };
  const served = expose({ app, capabilities: {} }, options);
  const outcome = [
    await asks.request('double', { n: 21 }),
    (await tasks.fetch(new Request('http://x/.well-known/agent-card.json'))).status,
    discovery.manifestOf({ app, capabilities: {} }).abp,
    (await discovery.discover('http://127.0.0.1/')).code,
    await workers
      .run('x')()
      .catch((error) => error instanceof AbpError && error.message),
    fromOrigins(['https://agent.example'])({ headers: { origin: 'https://agent.example' } }),
    createRecorder().truncated,
    globalThis.customElements?.get('abp-inspector') === (globalThis.window && AbpInspector),
    // No browser of these tests has WebMCP.
    await connectTools(globalThis.document, { agent: { name: 'a', version: '1' } }).catch(
      (error) => error instanceof AbpError && error.code,
    ),
    pools.transfer === transfer &&
      [discovery.AbpError, DriverError].every((each) => each === AbpError),
    await createHost().catch((error) => error instanceof AbpError && error.code),
    [serveSandbox, extensionTransport, windowTransport, modelContext].every(
      (each) => typeof each === 'function',
    ) && 'function',
    typeof indexedDBKeys().begin,
    await settled({ name: 'six', execute: () => 6 }).execute(),
    callsTool().execute().data.calls.length,
    /did you mean origins/.test(await warned),
  ].join();
  console.warn = warn;
  asks.close();
  served.close();
  return outcome;
}
