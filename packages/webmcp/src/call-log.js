/**
 * What became of the calls that came by WebMCP, for agents that ask: the browser tells a caller
 * that aborts nothing.
 */
import { getOwn } from 'abp-bridge/driver';

/** The tool that tells what became of calls. */
export const CALLS = 'abp.calls';
/** Calls that have ended and are remembered, and calls that are told at once. */
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
 * What an agent is told of a call.
 * @typedef {object} CallRecord
 * @property {string} callId
 * @property {string} capability
 * @property {State} state
 * @property {string} startedAt ISO 8601
 * @property {number} [duration] ms
 * @property {string} [outcome] what became of its work, unless it runs or has completed:
 *   `unstarted`, `stopped`, `finished`, `running` (it was cancelled, and has not returned),
 *   `unknown` or `failed`
 * @property {unknown} [report] what its handler had done and what remained, in its own words
 * @property {unknown} [progress] what its handler reported last
 * @property {ErrorObject} [error]
 */

/**
 * The values of a call. `became` tells what became of it; undefined if it is forgotten.
 * @typedef {Pick<CallRecord, 'callId' | 'capability' | 'startedAt' | 'progress'>
 *   & { response?: Ended, became: () => Became | undefined }} Logged
 */

/**
 * What a response says of its call.
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

/** Keeps the values of calls. What became of them it asks. */
export class CallLog {
  #next = 0;
  /**
   * In the order of their start; those that have ended in that of their end.
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
   * What is known, the latest first.
   * @param {unknown} [callId] only this one
   * @returns {CallRecord[]} those that run, and then those that have ended
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
 * The tool by which an agent asks what became of calls.
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
