/** Discovery's requests in Node. */
import { node, requestChecked } from '../../js/untrusted/node-request.js';
import { AbpError } from '../../js/common/errors.js';

/**
 * Encodings that servers may use although they were not requested, and the zlib functions for them.
 */
const ENCODINGS = new Map([
  ['gzip', 'createGunzip'],
  ['deflate', 'createInflate'],
  ['br', 'createBrotliDecompress'],
]);

/** @type {import('./discover.js').Request} */
export async function request(url, { accept, signal, ...how }) {
  const [stream, zlib] = await Promise.all(['stream', 'zlib'].map(node));
  const headers = { accept, 'accept-encoding': 'identity' };
  const incoming = await requestChecked(url, { signal, headers }, how);
  const encoding = incoming.headers['content-encoding']?.toLowerCase() ?? 'identity';
  const decoder = zlib[ENCODINGS.get(encoding) ?? '']?.();
  if (!decoder && encoding !== 'identity')
    throw new AbpError('CONTENT_TYPE', `The encoding ${encoding.slice(0, 200)} is not supported`);
  return {
    url,
    status: incoming.statusCode,
    header: (name) => incoming.headers[name],
    // The reader of the decoder gets the error.
    body: decoder ? stream.pipeline(incoming, decoder, () => {}) : incoming,
  };
}
