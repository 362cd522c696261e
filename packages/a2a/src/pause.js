/** Ms before something that failed is tried again. */
export const RETRY = 100;

/** Resolves after a time. @param {number} ms */
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
