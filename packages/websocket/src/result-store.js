/**
 * Results over transports that carry only text: Blobs are read, and large data is stored by the app and sent as a
 * reference (the protocol's `BinaryDataReference`).
 */
import { requireBounded } from '../../untrusted/src/bounds.js';
import { AbpError, toErrorObject } from '../../../js/common/errors.js';
import { contentOf, isBlob, replaceBinary, sizeOf } from '../../binary/src/binary.js';

/**
 * @typedef {object} Stored Where stored bytes can be fetched.
 * @property {string} downloadUrl
 * @property {number} [expiresAt] ms since 1970; the protocol asks for an hour at least
 * @property {{ type: 'bearer' | 'query', token?: string, header?: string }} [auth]
 */

/** @typedef {import('../../../js/transports/transport.js').CallContext} CallContext The call whose result is stored. */

/**
 * @callback Store Stores bytes where the agent can fetch them.
 * @param {{ content: ArrayBuffer, mimeType: string, filename?: string, size: number }} data
 * @param {CallContext} context the call whose result it is
 * @returns {Stored | Promise<Stored>}
 */

/**
 * Prepares a result for sending. This is part of the call: once the call is cancelled, nothing is stored.
 * @param {unknown} value the handler's result
 * @param {CallContext} context the call's
 * @param {Store | undefined} store stores large data, if the app can
 * @param {number} storeAbove bytes from which on data is large
 * @returns {Promise<unknown>} what to send
 */
export async function prepare(value, context, store, storeAbove) {
  try {
    requireBounded(value, { maxValues: 2 ** 24, maxCharacters: 2 ** 29 });
  } catch (cause) {
    const why = `The result cannot be sent: ${toErrorObject(cause).message}`;
    throw new AbpError('OPERATION_FAILED', why, { cause });
  }
  return replaceBinary(value, async (data, part) => {
    const large = store && sizeOf(data) > storeAbove;
    if (!large && !isBlob(data.content)) return part;
    const content = await contentOf(data);
    context.signal.throwIfAborted();
    return large ? stored(data, content, context, store) : { ...data, content };
  });
}

/** @param {any} data BinaryData @param {ArrayBuffer} content @param {CallContext} context @param {Store} store */
async function stored({ mimeType, filename }, content, { signal, callId }, store) {
  const size = content.byteLength;
  try {
    const answer = await store({ content, mimeType, filename, size }, { signal, callId });
    const { downloadUrl, expiresAt, auth } = answer;
    if (typeof downloadUrl !== 'string') throw new TypeError('store gave no downloadUrl');
    return { downloadUrl, mimeType, size, filename, expiresAt, auth };
  } catch (cause) {
    const why = `The result could not be stored: ${toErrorObject(cause).message}`;
    throw new AbpError('OPERATION_FAILED', why, { cause });
  }
}
