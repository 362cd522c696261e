/**
 * Parts that stand on the shim. The shim names none of their files: the entry that leads here
 * (packages/main) says what makes or loads each.
 * @type {import('../types/parts.js').Parts}
 */
export const parts = /** @type {any} */ ({});
