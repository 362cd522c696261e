// The app: its capabilities, and who may call them. The rest is display.
import { expose } from '../js/index.js';
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
    line.textContent = `${name}: working`;
    document.querySelector('#running')?.append(line);
    context.signal.addEventListener('abort', () => {
      line.textContent = `${name}: stopping (${context.signal.reason.message})`;
    });
    try {
      const data = await handler(params, context);
      line.textContent = `${name}: done`;
      return data;
    } catch (error) {
      line.textContent = `${name}: stopped (${/** @type {Error} */ (error).message})`;
      throw error;
    }
  };
}

const working = Object.entries({ ...capabilities, ...ofThePage }).map(([name, capability]) => [
  name,
  { ...capability, handler: shown(name, capability.handler) },
]);

expose(
  {
    app: { id: 'example.demo', name: 'Demo app', version: '1.0' },
    capabilities: Object.fromEntries(working),
  },
  // The page that embeds this one, in this demo; a real app lists the hosts it trusts. Opened by itself, it serves
  // clients of its own page.
  { origins: document.referrer ? [new URL(document.referrer).origin] : [] },
);
