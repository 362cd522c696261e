/**
 * Gives foreign WebMCP tools the features of this library's: a signal, an outcome, a report, and
 * the tool by which an agent asks for the outcome of a call. It needs no core: a tool's own promise
 * decides.
 */
import { keptReport, saysCancelled, toErrorObject } from 'abp-bridge/driver';
import { CANCELLING, CallLog, RUNNING, callsTool as toolOf, saidBy } from './call-log.js';

/** @typedef {import('./call-log.js').CallRecord} CallRecord */

/**
 * @typedef {object} SettledContext The second argument of a tool's `execute`, with all members that
 *   the browser passes.
 * @property {AbortSignal} signal fires when the agent cancels the call; never in browsers that do
 *   not report it
 * @property {(report: { applied?: unknown, remaining?: unknown }) => void} report records what was
 *   done and what remains. The last report is sent with the outcome. It must be JSON of at most
 *   4096 characters, or throws a TypeError
 */

/**
 * A tool for `registerTool`.
 * @typedef {object} SettledTool
 * @property {string} name
 * @property {(input: any, context: SettledContext) => unknown} execute
 */

/** The calls of all tools in this document. */
const log = new CallLog();

/**
 * Wraps a tool, so that the outcomes of its calls are known: `registerTool(settled({ name, execute,
 * … }))`. A call that is not cancelled returns the tool's result. A cancelled one returns `{
 * success: false, cancelled: true, error, metadata: { callId, outcome, report } }`, if the browser
 * lets it through; {@link callsTool} lists it in any case.
 * @template {SettledTool} T
 * @param {T} tool
 * @returns {Omit<T, 'execute'> & { execute: (input?: any, context?: any) => Promise<unknown> }}
 * @throws {TypeError} if it has no name, or no `execute`
 */
export function settled(tool) {
  if (typeof tool?.name !== 'string' || typeof tool.execute !== 'function') {
    throw new TypeError('settled needs a tool: { name, execute }');
  }
  return { ...tool, execute: (input, context) => run(tool, input, context) };
}

/**
 * The tool that lists the calls of wrapped tools and their outcomes: `registerTool(callsTool())`.
 * It lists every agent's calls, so think twice before you expose it to other origins.
 * @param {{ name?: string }} [options] `name` is `abp.calls` by default; use another if the page's
 *   app has such a tool already
 */
export const callsTool = ({ name } = {}) => toolOf(log, name);

/**
 * @param {any} tool
 * @param {unknown} input
 * @param {any} context the browser's
 */
async function run(tool, input, context) {
  const signal = /** @type {AbortSignal} */ (context?.signal ?? new AbortController().signal);
  const call = log.begin(tool.name, () =>
    call.response ? saidBy(call.response) : signal.aborted ? CANCELLING : RUNNING,
  );
  const start = performance.now();
  /** @type {unknown} */
  let report;
  const given = {
    ...context,
    signal,
    report(/** @type {unknown} */ said) {
      const kept = keptReport(said);
      if (kept === undefined)
        throw new TypeError('A report must be JSON of at most 4096 characters');
      report = kept;
    },
  };
  /**
   * @param {string} [outcome] absent for a success
   * @param {unknown} [thrown]
   */
  const ended = (outcome, thrown) => {
    /** @type {import('./call-log.js').Ended} */
    const response = { success: !outcome };
    if (outcome) {
      const error = (response.error = toErrorObject(thrown));
      if (signal.aborted || outcome === 'stopped') {
        response.cancelled = true;
        error.code = 'CANCELLED';
      }
      // The call may be repeated only if nothing was done, or if it changes nothing.
      if (outcome !== 'failed')
        error.retryable = outcome === 'unstarted' || tool.annotations?.readOnlyHint === true;
    }
    const { callId } = call;
    response.metadata = { callId, duration: performance.now() - start, outcome, report };
    log.end(call, response);
    return response;
  };
  if (signal.aborted) return ended('unstarted', signal.reason);
  try {
    const result = await tool.execute(input, given);
    if (signal.aborted) return ended('finished', signal.reason);
    ended();
    return result;
  } catch (error) {
    const stopped = saysCancelled(error) || (signal.aborted && error === signal.reason);
    const response = ended(stopped ? 'stopped' : 'failed', error);
    if (!signal.aborted) throw error;
    return response;
  }
}
