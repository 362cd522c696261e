/** An id that is nobody else's. Pages that came without TLS have no `randomUUID`, but they have randomness. */
export const newId = () =>
  crypto.randomUUID?.() ??
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
