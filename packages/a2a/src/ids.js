/** A unique id. Pages without TLS have no `randomUUID`, but they have random values. */
export const newId = () =>
  crypto.randomUUID?.() ?? hexOf(crypto.getRandomValues(new Uint8Array(16)));

/** @param {Uint8Array} bytes */
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** The extension with which an agent takes each message once, however often it comes: see repeats.js. */
export const REPEATS = 'urn:abp-bridge:a2a:repeats';

/**
 * What stands for a text, the same in every process: 128 bits of its SHA-256. Such is the id of a task that a message began
 * which may come again. Pages without TLS have no digests: it is the text itself.
 * @param {string} text
 */
export async function digestOf(text) {
  const digest = await crypto.subtle?.digest('SHA-256', new TextEncoder().encode(text));
  return digest ? hexOf(new Uint8Array(digest, 0, 16)) : text;
}
