/** This page itself in the place of one that a driver drives: what a driver would evaluate in it is called. */
import { MAX_FETCH_CHARACTERS } from '../transports/page.js';
import { pageAgent } from './page-agent.js';

/** The events of a page that the object in it listens to. */
const EVENTS = /** @type {const} */ (['addEventListener', 'removeEventListener']);

/**
 * The events of this page, where it has any.
 * @returns {Record<string, (...args: unknown[]) => unknown>}
 */
export const pageEvents = () =>
  Object.fromEntries(
    EVENTS.map((name) => [
      name,
      (/** @type {unknown[]} */ ...args) => /** @type {any} */ (globalThis)[name]?.(...args),
    ]),
  );

/**
 * Does in the page what a driver would do to it.
 * @param {any} page where `abp` is looked for, with the events of the page
 * @param {import('./page-tools.js').PageTools} [tools] taken where there is no `abp`
 * @returns {import('./page.js').PageLike}
 */
export const localPage = (page, tools) => ({
  async evaluateHandle() {
    const agent = pageAgent(MAX_FETCH_CHARACTERS, page, tools);
    const evaluate = async (/** @type {any} */ question, /** @type {any} */ argument) =>
      question(agent, argument);
    return { evaluate, dispose: async () => {} };
  },
});
