// A page whose tools are its own, and wrapped.
import { callsTool, settled } from '../../../src/settled.js';

const record = (line) => window.record?.(line);
window.releases = [];

const tools = {
  /** Heeds its signal after the step that it is at. */
  steps: async (_input, { signal, report }) => {
    for (let page = 1; ; page++) {
      report({ applied: page, remaining: 40 - page });
      if (page === 12) record('steps at 12');
      if (page >= 12) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      signal.throwIfAborted();
    }
  },
  deaf: async (_input, { signal }) => {
    signal.addEventListener('abort', () => record('deaf was told'));
    record('deaf started');
    await new Promise((resolve) => window.releases.push(resolve));
    record('deaf ended');
  },
  echo: (input) => input,
};
for (const [name, execute] of Object.entries(tools)) {
  const tool = settled({ name, description: name, inputSchema: { type: 'object' }, execute });
  void document.modelContext.registerTool(tool);
}
void document.modelContext.registerTool(callsTool());
