/** Requests in Node: each on a connection of its own, to exactly the address that was checked. */
import { AbpError } from '../common/errors.js';
import { HOW_TO_ALLOW, isPublic } from './addresses.js';

/**
 * Imports a module of Node by a name that bundlers cannot follow: pages never run this.
 * @param {string} name
 * @returns {Promise<any>}
 */
export const node = (name) => import(/* webpackIgnore: true */ /* @vite-ignore */ `node:${name}`);

/**
 * Sends a request to a host name. An address instead of a name is not checked here: check it
 * before.
 * @param {URL} url
 * @param {object} options of Node's `http.request`
 * @param {object} how
 * @param {boolean} [how.allowPrivate] whether addresses that are not public are allowed
 * @param {(name: string) => Promise<{ address: string }[]>} [how.lookup] resolves names (default:
 *   the system's resolver)
 * @param {Uint8Array} [how.body]
 * @returns {Promise<any>} Node's `IncomingMessage`. Redirections are not followed
 */
export async function requestChecked(url, options, { allowPrivate, lookup, body }) {
  const [http, dns] = await Promise.all([url.protocol.slice(0, -1), 'dns/promises'].map(node));
  /**
   * Resolves a name and checks its addresses; the connection is made to these only.
   * @param {string} name
   */
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
      ...options,
      agent: false,
      /**
       * @param {string} name
       * @param {{ all?: boolean }} options
       * @param {(error: unknown, ...answer: unknown[]) => void} done
       */
      lookup: (name, { all }, done) =>
        void addresses(name).then(
          (found) => (all ? done(null, found) : done(null, found[0].address, found[0].family)),
          done,
        ),
    });
    outgoing.on('error', reject);
    // A connection may also end without a response and without an error.
    outgoing.on('close', () => reject(new Error('the connection was closed')));
    outgoing.on('response', resolve);
    outgoing.end(body);
  });
}
