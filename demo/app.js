// The app: its capabilities, and who may call them. The rest is display.
import { expose } from '../js/index.js';
import { capabilities } from './operations/index.js';

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

const working = Object.entries(capabilities).map(([name, capability]) => [
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
