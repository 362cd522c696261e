/** @abp-bridge/a2a: a task's signal is `context.signal`. */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTaskServer } from '@abp-bridge/a2a';

const server = createTaskServer({
  card: { name: 'slow', description: 'fetches an address', version: '1', skills: [] },
  async execute({ message, signal, emitArtifact }) {
    for (let done = 1; done <= 8; done++) {
      await (await fetch(message.parts[0].text, { signal })).text();
      await sleep(250, undefined, { signal });
      emitArtifact({ artifactId: `step ${done}`, parts: [{ text: `step ${done}` }] });
    }
  },
});
createServer(server.handle).listen(Number(process.argv[2]), '127.0.0.1');
