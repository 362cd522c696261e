/**
 * Parts that stand on the shim and are loaded by those who choose them. The shim names none of their files: the entry that leads
 * here (packages/main) says what loads each.
 * @type {import('../types/parts.js').Parts}
 */
export const parts = /** @type {any} */ ({});
