// The app: its capabilities, and who may call them. The rest is display.
import { expose } from '../js/index.js';
import { createView, toolsOf } from '../js/mcp-apps/index.js';
import { webmcp } from '../js/webmcp/index.js';
import { pool } from '../js/workers/pool.js';
import { capabilities } from './operations/index.js';

const workers = pool(() => new Worker('/primes-worker.js', { type: 'module' }), { size: 2 });

/** What only a page can do. @type {Record<string, import('../js/app/registry.js').Capability>} */
const ofThePage = {
  'primes.count': {
    description: 'Counts primes in a worker, in a loop that never pauses',
    inputSchema: {
      type: 'object',
      properties: { below: { type: 'integer', minimum: 2, maximum: 2 ** 31 } },
      required: ['below'],
    },
    handler: workers.run('count'),
  },
  'report.publish': {
    description: 'Asks the agent for its consent in the midst of the call',
    async handler({ title }, { elicit, progress }) {
      progress({ progress: 1, total: 2, stage: 'asking' });
      const answer = await elicit({
        method: 'elicitation/confirm',
        params: { message: `Publish “${title}” for everybody to read?` },
      });
      return { published: answer.success && answer.data.confirmed === true };
    },
  },
  'count.up': {
    description: 'Counts up, ten a second',
    inputSchema: {
      type: 'object',
      properties: {
        to: { type: 'integer', minimum: 1, maximum: 1e6 },
        agent: { type: 'string', description: 'Whom the app names as the caller' },
      },
      required: ['to'],
    },
    async handler({ to }, { signal, progress }) {
      for (let counted = 1; counted <= to; counted++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        signal.throwIfAborted();
        progress({ progress: counted, total: to });
      }
      return { counted: to };
    },
  },
  'app.freeze': {
    description: 'Keeps the app from hearing anything for a while',
    inputSchema: {
      type: 'object',
      properties: { ms: { type: 'integer', minimum: 0, maximum: 60_000 } },
      required: ['ms'],
    },
    handler({ ms }) {
      for (const end = performance.now() + ms; performance.now() < end;);
    },
  },
};

/**
 * Shows each call while its handler runs.
 * @param {string} name
 * @param {import('../js/app/registry.js').Handler} handler
 * @returns {import('../js/app/registry.js').Handler}
 */
function shown(name, handler) {
  return async (params, context) => {
    const line = document.createElement('li');
    const call = params?.agent ? `${name} for ${params.agent}` : name;
    line.textContent = `${call}: working`;
    document.querySelector('#running')?.append(line);
    context.signal.addEventListener('abort', () => {
      line.textContent = `${call}: stopping (${context.signal.reason.message})`;
    });
    try {
      const data = await handler(params, context);
      line.textContent = `${call}: done`;
      return data;
    } catch (error) {
      line.textContent = `${call}: stopped (${/** @type {Error} */ (error).message})`;
      throw error;
    }
  };
}

const working = Object.entries({ ...capabilities, ...ofThePage }).map(([name, capability]) => [
  name,
  { ...capability, handler: shown(name, capability.handler) },
]);

const app = { id: 'example.demo', name: 'Demo app', version: '1.0' };
// The page that embeds this one, in this demo; a real app lists the hosts it trusts. Opened by itself, it serves
// clients of its own page.
const origins = document.referrer ? [new URL(document.referrer).origin] : [];
const exposed = expose(
  { app, capabilities: Object.fromEntries(working) },
  { origins, webmcp: webmcp() },
);
// For a page that is a host of MCP Apps. Where none is, nobody answers.
createView({ app, origins, tools: toolsOf(exposed) }).catch(() => {});
