/** What is called in the sessions of a long life. */
import { AbpError } from '../../parts/main/index.js';

/**
 * Lasts until it is told to stop.
 * @param {AbortSignal} signal
 * @returns {Promise<never>}
 */
export const untilAborted = (signal) =>
  new Promise((_resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });

/** @type {Record<string, (params: any, context: any) => unknown>} */
export const HANDLERS = {
  echo: (params) => params,
  fails() {
    throw new AbpError('OPERATION_FAILED', 'no', { retryable: true });
  },
  lasts: (_params, { signal }) => untilAborted(signal),
  nested: (_params, { call, signal }) => call('lasts', {}, { signal }),
  reports(_params, { progress }) {
    for (let i = 0; i < 3; i++) progress?.({ progress: i, total: 3 });
  },
  asks: (_params, { elicit }) =>
    elicit?.({ method: 'elicitation/input', params: { message: '?' } }),
  async *counts({ rows }) {
    for (let i = 0; i < rows; i++) yield i;
    return rows;
  },
  async sums(_params, { input }) {
    let sum = 0;
    for await (const value of input ?? []) sum += value;
    return sum;
  },
};
