/** A unique id. Pages without TLS have no `randomUUID`, but they have random values. */
export const newId = () =>
  crypto.randomUUID?.() ?? hexOf(crypto.getRandomValues(new Uint8Array(16)));

/** @param {Uint8Array} bytes */
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * The extension by which an agent accepts each message once, however often it is sent: see
 * repeats.js.
 */
export const REPEATS = 'urn:abp-bridge:a2a:repeats';
