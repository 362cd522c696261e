/** Objects: each is stored in pieces, and a message that lists the pieces. */
import { MAX_PUT, objectNotFound, unavailable } from '@abp-bridge/a2a/store';
import { nameIn, token } from './nats-link.js';

/** @import { Backend } from '@abp-bridge/a2a/store' */
/** @import { Stream } from './nats-stream.js' */

/** Bytes of a piece, if NATS accepts messages of that size. */
const CHUNK = 256 * 1024;

/** @typedef {{ name: string, id: string, count: number, size: number }} StoredObject */

export class Objects {
  #link;
  #stream;

  /** @param {Stream} stream */
  constructor(stream) {
    this.#link = stream.link;
    this.#stream = stream;
  }

  /** @param {string} name */
  #subject(name) {
    return this.#link.subject('object', token(name));
  }

  /**
   * @param {string} of the token of its name
   * @param {string} id of one `put`
   * @param {number | '*'} number
   */
  #chunk(of, id, number) {
    return this.#link.subject('chunk', of, id, String(number));
  }

  /**
   * @param {string} name
   * @returns {Promise<StoredObject | undefined>}
   */
  async #find(name) {
    return (await this.#stream.last(this.#subject(name)))?.json();
  }

  /** @type {Backend['put']} */
  put = async (name, bytes) => {
    this.#link.check(name);
    const id = crypto.randomUUID();
    const began = performance.now();
    const size = Math.min(CHUNK, this.#stream.room);
    const count = Math.ceil(bytes.length / size);
    for (let i = 0; i < count; i++) {
      const chunk = bytes.subarray(i * size, (i + 1) * size);
      await this.#stream.publish(this.#chunk(token(name), id, i), chunk);
    }
    const before = await this.#find(name);
    // After this time the pieces may have been deleted.
    if (performance.now() - began > MAX_PUT) throw unavailable('NATS is too slow for the object');
    const meta = JSON.stringify({ name, id, count, size: bytes.length });
    await this.#stream.publish(this.#subject(name), meta);
    if (before) await this.#stream.purge(this.#chunk(token(name), before.id, '*'));
  };

  /** @type {Backend['get']} */
  get = async (name) => {
    for (let broken; ;) {
      this.#link.check(name);
      const object = await this.#find(name);
      if (!object || object.id === broken) throw objectNotFound(name);
      const bytes = new Uint8Array(object.size);
      let i = 0;
      let at = 0;
      for (; i < object.count; i++) {
        const chunk = await this.#stream.last(this.#chunk(token(name), object.id, i));
        if (!chunk) break;
        bytes.set(chunk.data, at);
        at += chunk.data.length;
      }
      if (i === object.count) return bytes;
      // It was replaced or removed while it was read, unless it is still the same.
      broken = object.id;
    }
  };

  /** @type {Backend['remove']} */
  remove = async (name) => {
    this.#link.check(name);
    const object = await this.#find(name);
    if (!object) return;
    await this.#stream.purge(this.#subject(name));
    await this.#stream.purge(this.#chunk(token(name), object.id, '*'));
  };

  /** @type {Backend['objects']} */
  objects = async (prefix) => {
    this.#link.check();
    const found = await this.#stream.read(this.#link.subject('object', '*'), 1, Infinity);
    return found
      .map(({ data }) => JSON.parse(data).name)
      .filter((name) => name.startsWith(prefix))
      .sort();
  };

  /**
   * Everything large is a chunk, and chunks are in the order of arrival. Only their subjects are
   * read. Their age is measured by the server's own clock: relative to the latest message that it
   * stored.
   * @type {Backend['sweep']}
   */
  sweep = async ({ age, limit, keeps, after = '0' }) => {
    this.#link.check();
    const { last_ts: latest } = await this.#stream.state();
    const before = Date.parse(latest) - age;
    const all = this.#link.subject('chunk', '*', '*', '*');
    const { found, wanted } = await this.#stream.consume(all, Number(after) + 1, limit, {
      headers_only: true,
    });
    const old = found.filter(({ time }) => time <= before);
    const writes = new Set(old.map(({ subject }) => subject.split('.').slice(-3, -1).join('.')));
    for (const write of writes) {
      const [of, id] = write.split('.');
      const name = nameIn(of);
      const object = await this.#find(name);
      if (object?.id !== id) await this.#stream.purge(this.#chunk(of, id, '*'));
      else if (!(await keeps(name))) await this.remove(name);
    }
    return wanted === limit && old.length > 0 ? String(old[old.length - 1].seq) : undefined;
  };
}
