// Makes seeds of the target `text`, in the folder given, and the dictionary: the messages that the
// transcripts cause, as each side hears them. `scripts/fuzz.sh corpus` runs it and keeps of the
// seeds what adds coverage.
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect, expose } from '../../parts/main/index.js';
import { AgentDriver, AppDriver } from '../support/drivers.js';
import { sections } from '../support/sections.js';
import { Log, play } from '../support/transcript.js';

const folder = process.argv[2];
/** What ids begin with in the target, whose seed is 0. */
const PREFIX = 'e04454b7fbac018a7c5d-1';
const words = new Set();

/** Every name and short text in a message. */
function collect(value, key) {
  if (key) words.add(JSON.stringify(key));
  if (typeof value === 'string' && value.length < 32) words.add(value);
  else if (typeof value === 'object' && value !== null) {
    for (const [name, part] of Object.entries(value))
      collect(part, Array.isArray(value) ? '' : name);
  }
}

function record(port, heard) {
  const post = port.postMessage.bind(port);
  port.postMessage = (message, transfer) => {
    heard(message);
    post(message, transfer);
  };
}

/** What each side hears of a section, and does, as lines of the target. */
async function linesOf(section) {
  const lines = { agent: [], app: [] };
  const { port1, port2 } = new MessageChannel();
  const log = new Log();
  // What is random or measured is not, so that the same messages make the same seeds.
  const text = (message) =>
    JSON.stringify(message)
      .replace(/[0-9a-f]{20}-1/g, PREFIX)
      .replace(/"(timestamp|duration)":\d+/g, '"$1":0');
  record(port1, (message) => {
    const said = text(message);
    const { type, payload } = JSON.parse(said);
    collect(JSON.parse(said));
    lines.app.push(said);
    if (type === 'capabilities/call') lines.agent.push(`?${payload.callId}`);
  });
  record(port2, (message) => {
    collect(JSON.parse(text(message)));
    lines.agent.push(text(message));
  });
  const agent = new AgentDriver((line) => log.add(line));
  const app = new AppDriver((line) => log.add(line));
  expose(
    { app: { id: 'x.y', name: 'X', version: '1' }, capabilities: app.handlers },
    { port: port2, limits: section.limits.app },
  );
  agent.client = await connect(port1, {
    agent: { name: 'x', version: '1' },
    upgrade: 'none',
    limits: section.limits.agent,
    onElicitation: () => 1,
  });
  const pair = {
    log,
    do(side, what, ...rest) {
      if (side === 'app') lines.app.push('=');
      if (what === 'abort') lines.agent.push('!');
      return (side === 'app' ? app : agent).do(what, ...rest);
    },
    settle: async () => void (await agent.client.call('barrier')),
  };
  await play(section, pair);
  port1.close();
  return lines;
}

mkdirSync(folder, { recursive: true });
const all = await Promise.all(sections().map(linesOf));
// Sections that sound the same are told once.
for (const [side, choice] of [
  ['agent', '0'],
  ['app', '1'],
]) {
  const seeds = new Set(all.map((lines) => [choice, ...lines[side], '+5000', ''].join('\n')));
  [...seeds].forEach((seed, i) => writeFileSync(`${folder}/${side}-${i}`, seed));
}
for (const type of ['bridge/ping', 'bridge/pong', 'bridge/bye', 'call-result', 'cancel-result'])
  words.add(type);
words.add(PREFIX);
const entries = [...words].filter((word) => /^[ -~]{2,}$/.test(word)).sort();
writeFileSync(
  new URL('abp.dict', import.meta.url),
  `# Made by seeds.js.\n${entries.map((word) => JSON.stringify(word)).join('\n')}\n`,
);
process.exit();
