/** What became of the calls that came by WebMCP, for agents that ask: the browser tells a caller that aborts nothing. */

/** Calls that have ended and are remembered, and calls that are told at once. */
const MAX_REMEMBERED = 64;
const MAX_TOLD = 128;

/**
 * @typedef {object} CallRecord
 * @property {string} callId
 * @property {string} capability
 * @property {'running' | 'cancelling' | 'completed' | 'failed' | 'cancelled'} state `cancelling`: the agent has cancelled
 *   it, and its handler has not returned
 * @property {string} startedAt ISO 8601
 * @property {number} [duration] ms
 * @property {any} [progress] what its handler reported last
 * @property {import('../common/errors.js').ErrorObject} [error]
 */

export class CallLog {
  #next = 0;
  /** In order of their start. @type {Map<string, CallRecord>} */
  #running = new Map();
  /** In order of their end. @type {CallRecord[]} */
  #ended = [];

  /**
   * @param {string} capability
   * @returns {CallRecord}
   */
  begin(capability) {
    const callId = `webmcp-${++this.#next}`;
    /** @type {CallRecord} */
    const record = {
      callId,
      capability,
      state: 'running',
      startedAt: new Date().toISOString(),
    };
    this.#running.set(callId, record);
    return record;
  }

  /**
   * @param {CallRecord} record
   * @param {import('../agent/client.js').Response} response
   */
  end(record, { success, cancelled, error, metadata }) {
    record.state = success ? 'completed' : cancelled ? 'cancelled' : 'failed';
    record.duration = metadata?.duration;
    record.error = error;
    this.#running.delete(record.callId);
    this.#ended.push(record);
    if (this.#ended.length > MAX_REMEMBERED) this.#ended.shift();
  }

  /**
   * What is known, the latest first.
   * @param {unknown} [callId] only this one
   * @returns {CallRecord[]} those that run, and then those that have ended
   */
  tell(callId) {
    const all = [...[...this.#running.values()].reverse(), ...[...this.#ended].reverse()];
    return callId === undefined
      ? all.slice(0, MAX_TOLD)
      : all.filter((record) => record.callId === callId);
  }
}
