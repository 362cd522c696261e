/**
 * Parts that the shim uses and names no file of: the entry that leads here (parts/main) says what
 * makes or loads each.
 * @type {import('../types/parts.js').Parts}
 */
export const parts = /** @type {any} */ ({});
