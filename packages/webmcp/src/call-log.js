/** What became of the calls that came by WebMCP, for agents that ask: the browser tells a caller that aborts nothing. */

import { getOwn } from '../../../js/common/values.js';

/** The tool that tells what became of calls. */
export const CALLS = 'abp.calls';
/** Calls that have ended and are remembered, and calls that are told at once. */
const MAX_REMEMBERED = 64;
const MAX_TOLD = 128;

/** @typedef {import('../../../js/common/errors.js').ErrorObject} ErrorObject */
/** @typedef {{ duration?: number, outcome?: string, report?: unknown }} Metadata what is told of an end */
/** @typedef {{ success: boolean, cancelled?: boolean, error?: ErrorObject, metadata?: Metadata }} Ended a response without its data */

/**
 * What an agent is told of a call.
 * @typedef {object} CallRecord
 * @property {string} callId
 * @property {string} capability
 * @property {'running' | 'cancelling' | 'completed' | 'failed' | 'cancelled'} state `cancelling`: the agent has cancelled
 *   it, and its handler has not returned
 * @property {string} startedAt ISO 8601
 * @property {number} [duration] ms
 * @property {string} [outcome] what became of its work, unless it runs or has completed: `unstarted`, `stopped`, `finished`,
 *   `running` (it was cancelled, and has not returned), `unknown` or `failed`
 * @property {unknown} [report] what its handler had done and what remained, in its own words
 * @property {unknown} [progress] what its handler reported last
 * @property {ErrorObject} [error]
 */

/** A call: what was asked of it, and what came of it. The endpoint keeps its state; here it is only described. */
export class LoggedCall {
  /** What its handler reported last. @type {unknown} */
  progress = undefined;
  /** What came of it. @type {Ended | undefined} */
  response = undefined;
  #startedAt = new Date().toISOString();

  /**
   * @param {string} callId
   * @param {string} capability
   * @param {AbortSignal} signal by which it is cancelled
   */
  constructor(callId, capability, signal) {
    this.callId = callId;
    this.capability = capability;
    this.signal = signal;
  }

  /** @returns {CallRecord} */
  describe() {
    const { callId, capability, progress, signal, response } = this;
    const startedAt = this.#startedAt;
    const told = { callId, capability, startedAt, progress };
    if (!response) {
      return signal.aborted
        ? { ...told, state: 'cancelling', outcome: 'running' }
        : { ...told, state: 'running' };
    }
    const { metadata, error } = response;
    const { duration, outcome, report } = metadata ?? {};
    return { ...told, state: stateOf(response), outcome, report, duration, error };
  }
}

/** @param {Ended} response */
const stateOf = ({ success, cancelled }) =>
  success ? 'completed' : cancelled ? 'cancelled' : 'failed';

export class CallLog {
  #next = 0;
  /** In order of their start. @type {Map<string, LoggedCall>} */
  #running = new Map();
  /** In order of their end. @type {LoggedCall[]} */
  #ended = [];

  /**
   * @param {string} capability
   * @param {AbortSignal} signal by which it is cancelled
   */
  begin(capability, signal) {
    const call = new LoggedCall(`webmcp-${++this.#next}`, capability, signal);
    this.#running.set(call.callId, call);
    return call;
  }

  /**
   * @param {LoggedCall} call
   * @param {Ended} response
   */
  end(call, { success, cancelled, error, metadata }) {
    call.response = { success, cancelled, error, metadata };
    this.#running.delete(call.callId);
    this.#ended.push(call);
    if (this.#ended.length > MAX_REMEMBERED) this.#ended.shift();
  }

  /**
   * What is known, the latest first.
   * @param {unknown} [callId] only this one
   * @returns {CallRecord[]} those that run, and then those that have ended
   */
  tell(callId) {
    const all = [...[...this.#running.values()].reverse(), ...[...this.#ended].reverse()];
    const told =
      callId === undefined ? all.slice(0, MAX_TOLD) : all.filter((call) => call.callId === callId);
    return told.map((call) => call.describe());
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
