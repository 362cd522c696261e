// The rules of the protocol, over a MessageChannel: this library on both sides, and each side against a
// plain peer that shares no code with it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, expose } from '../../js/index.js';
import { plainAgent, plainApp, portChannel } from '../plain/plain.js';
import { AgentDriver, AppDriver } from '../support/drivers.js';
import { sections } from '../support/sections.js';
import { Log, play } from '../support/transcript.js';

const MODES = [
  { name: 'ours, frames', agent: 'ours', app: 'ours', upgrade: 'frames' },
  { name: 'ours, messages', agent: 'ours', app: 'ours', upgrade: 'none' },
  { name: 'our agent, plain app', agent: 'ours', app: 'plain', upgrade: 'frames' },
  { name: 'plain agent, our app', agent: 'plain', app: 'ours', upgrade: 'frames' },
];

async function pairOf({ agent, app, upgrade }, { limits }) {
  const log = new Log();
  const { port1, port2 } = new MessageChannel();
  const agentSide = new AgentDriver((line) => log.add(line));
  const appSide = new AppDriver((line) => log.add(line));
  if (app === 'ours') {
    expose(
      { app: { id: 'test.app', name: 'Test', version: '1' }, capabilities: appSide.handlers },
      { port: port2, limits: limits.app },
    );
  } else plainApp(portChannel(port2), appSide.handlers);
  agentSide.client =
    agent === 'ours'
      ? await connect(port1, {
          agent: { name: 'test', version: '1' },
          upgrade,
          limits: limits.agent,
        })
      : await plainAgent(portChannel(port1), agentSide);
  return {
    log,
    do: (side, ...words) => (side === 'agent' ? agentSide : appSide).do(...words),
    // A round trip, so that what should not come has had its chance to come.
    settle: async () => void (await agentSide.client.call('barrier')),
    close: () => [port1, port2].forEach((port) => port.close()),
  };
}

for (const mode of MODES) {
  describe(mode.name, () => {
    const both = mode.agent === 'ours' && mode.app === 'ours';
    for (const section of sections().filter(({ ours }) => both || !ours)) {
      test(section.title, async () => {
        const pair = await pairOf(mode, section);
        try {
          const { seen, expected } = await play(section, pair);
          assert.deepEqual(seen, expected);
        } finally {
          pair.close();
        }
      });
    }
  });
}
