/** @param {string} state */
export const isEnd = (state) => ['completed', 'failed', 'canceled', 'rejected'].includes(state);
