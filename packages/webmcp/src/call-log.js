/**
 * Outcomes of calls by WebMCP, for agents that ask: the browser reports nothing to a caller that
 * aborts.
 */
import { getOwn } from 'abp-bridge/driver';

/** The name of the tool that lists calls. */
export const CALLS = 'abp.calls';
/** Ended calls that are remembered, and calls in one answer. */
const MAX_REMEMBERED = 64;
const MAX_TOLD = 128;

/** @typedef {import('abp-bridge/driver').ErrorObject} ErrorObject */
/**
 * @typedef {'running' | 'cancelling' | 'completed' | 'failed' | 'cancelled'} State `cancelling`: it
 *   was cancelled, and its handler has not returned
 */
/** @typedef {{ state: State, outcome?: string }} Became */
/**
 * A response without its data.
 * @typedef {object} Ended
 * @property {boolean} success
 * @property {boolean} [cancelled]
 * @property {ErrorObject} [error]
 * @property {{ callId?: string, duration?: number, outcome?: string, report?: unknown }} [metadata]
 */

/**
 * A call in the answer of the tool.
 * @typedef {object} CallRecord
 * @property {string} callId
 * @property {string} capability
 * @property {State} state
 * @property {string} startedAt ISO 8601
 * @property {number} [duration] ms
 * @property {string} [outcome] of its work, unless it runs or has completed: `unstarted`,
 *   `stopped`, `finished`, `running` (it was cancelled, and has not returned), `unknown` or
 *   `failed`
 * @property {unknown} [report] of its handler: what was done and what remained
 * @property {unknown} [progress] the latest
 * @property {ErrorObject} [error]
 */

/**
 * The values of a call. `became` returns its outcome; undefined if it is forgotten.
 * @typedef {Pick<CallRecord, 'callId' | 'capability' | 'startedAt' | 'progress'>
 *   & { response?: Ended, became: () => Became | undefined }} Logged
 */

/**
 * The state and outcome in a response.
 * @param {Ended} response
 * @returns {Became}
 */
export const saidBy = ({ success, cancelled, metadata }) => ({
  state: success ? 'completed' : cancelled ? 'cancelled' : 'failed',
  outcome: metadata?.outcome,
});
/** @type {Became} */
export const RUNNING = { state: 'running' };
/** @type {Became} */
export const CANCELLING = { state: 'cancelling', outcome: 'running' };

/** Keeps the values of calls. Their outcomes are queried. */
export class CallLog {
  #next = 0;
  /**
   * Running calls in the order of their start, ended ones in that of their end.
   * @type {Map<string, Logged>}
   */
  #calls = new Map();

  /**
   * @param {string} capability
   * @param {Logged['became']} became
   * @returns {Logged}
   */
  begin(capability, became) {
    const callId = `webmcp-${++this.#next}`;
    const call = { callId, capability, startedAt: new Date().toISOString(), became };
    this.#calls.set(callId, call);
    return call;
  }

  /**
   * @param {Logged} call
   * @param {Ended} response
   */
  end(call, { success, cancelled, error, metadata }) {
    call.response = { success, cancelled, error, metadata };
    this.#calls.delete(call.callId);
    this.#calls.set(call.callId, call);
    const ended = [...this.#calls.values()].filter(({ response }) => response);
    if (ended.length > MAX_REMEMBERED) this.#calls.delete(ended[0].callId);
  }

  /**
   * The known calls, the latest first.
   * @param {unknown} [callId] of the only call to return
   * @returns {CallRecord[]} running calls, then ended ones
   */
  tell(callId) {
    /** @type {[runs: CallRecord[], ended: CallRecord[]]} */
    const [runs, ended] = [[], []];
    for (const call of [...this.#calls.values()].reverse()) {
      const { response, became, ...told } = call;
      const now = became();
      if (!now) this.#calls.delete(call.callId);
      else if (callId === undefined || callId === call.callId) {
        const { duration, report } = response?.metadata ?? {};
        const record = { ...told, ...now, report, duration, error: response?.error };
        (now === RUNNING || now === CANCELLING ? runs : ended).push(record);
      }
    }
    return [...runs, ...ended].slice(0, MAX_TOLD);
  }
}

/**
 * The tool by which an agent asks for the outcomes of calls.
 * @param {CallLog} log
 * @param {string} [name]
 */
export const callsTool = (log, name = CALLS) => ({
  name,
  description:
    "Lists the outcomes of earlier calls of this page's tools, latest first. Use it after a call was cancelled or lost: its outcome cannot be known otherwise. Each call has callId, capability, state (running, cancelling, completed, failed or cancelled), startedAt, duration in ms, progress and error. Unless it succeeded, outcome says what became of its work (unstarted: it never ran; stopped: it ended early; finished: all its effects stand; running: it has not returned; failed; unknown), and report what it had done and what remains.",
  inputSchema: {
    type: 'object',
    properties: {
      callId: { type: 'string', description: 'Only this call; its result has it in metadata' },
    },
  },
  annotations: { readOnlyHint: true },
  /** @param {unknown} [input] */
  execute: (input) => ({ success: true, data: { calls: log.tell(getOwn(input, 'callId')) } }),
});
