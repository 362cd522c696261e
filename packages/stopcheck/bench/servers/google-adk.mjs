/** @google/adk, `toA2a`: an agent without a model. Its signal is `context.abortSignal`. */
import { BaseAgent, createEvent } from '@google/adk';
import { toA2a } from '@google/adk/a2a';

class Slow extends BaseAgent {
  async *runAsyncImpl(context) {
    const { invocationId, userContent, abortSignal: signal } = context;
    const url = userContent.parts[0].text;
    const say = (text, partial) =>
      createEvent({
        invocationId,
        author: this.name,
        partial,
        content: { role: 'model', parts: [{ text }] },
      });
    for (let done = 1; done <= 8; done++) {
      if (signal?.aborted || context.endInvocation) return;
      await (await fetch(url, { signal })).text();
      await new Promise((resolve) => setTimeout(resolve, 250));
      yield say(`step ${done} `, true);
    }
    yield say('done', false);
  }
  async *runLiveImpl() {}
}
const agent = new Slow({ name: 'slow', description: 'fetches an address' });
const port = Number(process.argv[2]);
const app = await toA2a(agent, { host: '127.0.0.1', port, allowUnauthenticated: true });
app.listen(port, '127.0.0.1');
