// An app whose handlers write to the database. Its address says which. Its tools are called by a
// script of the page, too.
import { expose } from '/parts/main/index.js';
import { webmcp } from '/packages/webmcp/src/index.js';
import { APP, makeCall } from '/tests/effects/calls.js';
import { handlersOf, withChecks } from '/tests/effects/work.js';
import { placeOf, settingsHere } from './place.js';

const { database, name, origins, limits, tools, lacks } = settingsHere();
const place = placeOf(database, name);
const capabilities = withChecks(handlersOf(place, lacks));
window.exposed = expose(
  { app: APP, capabilities },
  { origins, limits, ...(tools && { webmcp: webmcp() }) },
);

const { modelContext } = document;
/**
 * @param {string} name
 * @param {object} input
 * @param {object} [options]
 */
async function execute(name, input, options) {
  const find = async () => (await modelContext.getTools()).find((each) => each.name === name);
  let tool;
  while (!(tool = await find())) await place.pace(); // tools are registered one after the other
  return JSON.parse(await modelContext.executeTool(tool, input, options));
}
/** The latest call of a tool of which anything is known. */
const latest = async (tool) =>
  (await execute('abp.calls', {})).data.calls.find(({ capability }) => capability === tool);

/**
 * The last call of each tool: the next one waits for it, so that the latest that is known is this
 * one's.
 */
const last = new Map();
function call(tool, params, { signal }) {
  const called = Promise.resolve(last.get(tool)).then(async () => {
    const before = await latest(tool);
    try {
      const { success, metadata } = await execute(tool, params, { signal });
      return { success, outcome: metadata.outcome, report: metadata.report };
    } catch {
      // The browser says nothing to who has cancelled.
      for (;;) {
        const now = await latest(tool);
        if (now?.callId === before?.callId) return { success: false, outcome: 'unstarted' };
        const { state, outcome, report } = now;
        if (!/ing$/.test(state)) return { success: state === 'completed', outcome, report };
        await place.pace();
      }
    }
  });
  last.set(tool, called);
  return called;
}
window.make = (plan) => makeCall(call, place, plan);
window.isReady = true;
