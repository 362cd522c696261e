/** A unique id. Pages without TLS have no `randomUUID`, but they have random values. */
export const newId = () =>
  crypto.randomUUID?.() ??
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');

/** The extension with which an agent takes each message once, however often it comes: see repeats.js. */
export const REPEATS = 'urn:abp-bridge:a2a:repeats';

/** The name of a task that a message begins which may come again, to another process as well. @param {string} key of the message */
export async function nameOf(key) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key));
  return Array.from(new Uint8Array(digest, 0, 16), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}
