/**
 * The parts that the shim uses without naming their files. The entry of the package (parts/main)
 * sets a function for each.
 * @type {import('../types/parts.js').Parts}
 */
export const parts = /** @type {any} */ ({});
