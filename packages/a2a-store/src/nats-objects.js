/** Objects: each in pieces, and a message that says which pieces it has. */
import { MAX_PUT, objectNotFound, unavailable } from '@abp-bridge/a2a/store';
import { nameIn, token } from './nats-link.js';

/** @import { Backend } from '@abp-bridge/a2a/store' */
/** @import { Stream } from './nats-stream.js' */

/** Bytes of a piece, where NATS takes messages of that size. */
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
   * @param {string} id of what was put
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
    // What took longer may be deleted by now.
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
   * All that is large are chunks, and they are in the order in which they came. Of them only the
   * subjects are read. How old they are is told by the server's own clock: no older than by what it
   * stored last.
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
