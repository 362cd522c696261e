/** Requests in Node: each on a connection of its own, to exactly the address that was checked. */
import { HOW_TO_ALLOW, isPublic } from '../../../untrusted/src/addresses.js';
import { AbpError } from '../../../../js/common/errors.js';

/** Imports a module of Node by a name that bundlers do not see: pages never run this. @param {string} name @returns {Promise<any>} */
const node = (name) => import(/* webpackIgnore: true */ /* @vite-ignore */ `node:${name}`);

/** Encodings that servers may use although we did not ask for them, and how zlib reads them. */
const ENCODINGS = new Map([
  ['gzip', 'createGunzip'],
  ['deflate', 'createInflate'],
  ['br', 'createBrotliDecompress'],
]);

/** @type {import('./discover.js').Request} */
export async function request(url, { accept, signal, allowPrivate, lookup }) {
  const [http, dns, stream, zlib] = await Promise.all(
    [url.protocol.slice(0, -1), 'dns/promises', 'stream', 'zlib'].map(node),
  );
  /** Resolves a name and checks its addresses; the connection is made to these only. @param {string} name */
  const addresses = async (name) => {
    /** @type {{ address: string }[]} */
    const found = await (lookup ?? ((host) => dns.lookup(host, { all: true })))(name);
    if (!found.length) throw new Error(`${name} has no address`);
    const hidden = allowPrivate ? undefined : found.find(({ address }) => !isPublic(address));
    if (hidden) {
      const why = `${name} is ${hidden.address}, which is not a public address: ${HOW_TO_ALLOW}`;
      throw new AbpError('BLOCKED', why);
    }
    return found.map(({ address }) => ({ address, family: address.includes(':') ? 6 : 4 }));
  };
  return new Promise((resolve, reject) => {
    const outgoing = http.request(url, {
      signal,
      agent: false,
      headers: { accept, 'accept-encoding': 'identity' },
      /** @param {string} name @param {{ all?: boolean }} options @param {(error: unknown, ...answer: unknown[]) => void} done */
      lookup: (name, { all }, done) =>
        void addresses(name).then(
          (found) => (all ? done(null, found) : done(null, found[0].address, found[0].family)),
          done,
        ),
    });
    outgoing.on('error', reject);
    // A connection may also end without a response and without an error.
    outgoing.on('close', () => reject(new Error('the connection was closed')));
    outgoing.on('response', (/** @type {any} */ incoming) => {
      const encoding = incoming.headers['content-encoding']?.toLowerCase() ?? 'identity';
      const decoder = zlib[ENCODINGS.get(encoding) ?? '']?.();
      if (!decoder && encoding !== 'identity') {
        return reject(
          new AbpError('CONTENT_TYPE', `The encoding ${encoding.slice(0, 200)} is not supported`),
        );
      }
      return resolve({
        url,
        status: incoming.statusCode,
        header: (name) => incoming.headers[name],
        // The reader gets the error.
        body: decoder ? stream.pipeline(incoming, decoder, () => {}) : incoming,
      });
    });
    outgoing.end();
  });
}
