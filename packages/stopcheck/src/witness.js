/**
 * The witness: it sees the work of a call from outside, by what the work does. It is put into the
 * arguments of the call as a placeholder:
 *
 * - `{witness}`: an address. Each request to it is an effect, and is answered at once.
 * - `{witness:2000}`: an address whose answer takes that many ms. The work goes on as long as its
 *   socket is open.
 * - `{file}`: the path of a file. Each line in it is an effect.
 * - `{key}`: a word that is another one for each call.
 *
 * Processes of the checked program are watched by processes.js.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, watch } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Moments } from './moments.js';

/**
 * @typedef {object} Sign of work.
 * @property {number} at ms
 * @property {'effect' | 'begin' | 'beat' | 'end'} what an effect, or something that lasts: it
 *   begins, goes on, and ends
 */

/** Pieces of an answer that takes a while. */
const PIECES = 20;

/** The work of one call. */
export class Work extends Moments {
  /** In order. @type {Sign[]} */
  signs = [];
  /** Effects and beats so far; of processes, ms. */
  amount = 0;

  /** @param {string} key of the call */
  constructor(key) {
    super();
    this.key = key;
  }

  /**
   * @param {Sign['what']} what
   * @param {number} [at] ms
   * @param {number} [amount] of an effect or a beat
   */
  add(what, at = performance.now(), amount = 1) {
    this.signs.push({ at, what });
    if (what === 'effect' || what === 'beat') this.amount += amount;
    this.changed();
  }
}

export class Witness {
  /** @type {Map<string, Work>} */
  #works = new Map();
  /** @type {import('node:http').Server | undefined} */
  #server;
  #origin = '';
  /** @type {string | undefined} */
  #folder;
  /** @type {import('node:fs').FSWatcher | undefined} */
  #watcher;

  /**
   * @param {string} text in which placeholders stand
   * @returns {Promise<Witness>}
   */
  static async open(text) {
    const witness = new Witness();
    if (/\{witness(:\d+)?\}/.test(text)) await witness.#listen();
    if (text.includes('{file}')) witness.#watchFolder();
    return witness;
  }

  /** How it sees the work; undefined if it sees nothing. */
  get kind() {
    return this.#server ? 'requests' : this.#folder ? 'a file' : undefined;
  }

  /**
   * The work of a call that is about to be made.
   * @param {string} key
   */
  expect(key) {
    const work = new Work(key);
    this.#works.set(key, work);
    return work;
  }

  /**
   * The text with what stands for its placeholders in the call of that key.
   * @param {string} text
   * @param {string} key
   */
  fill(text, key) {
    return text
      .replace(/\{witness(?::(\d+))?\}/g, (_, ms) => [this.#origin, ms ?? '0', key].join('/'))
      .replaceAll('{file}', this.#folder ? join(this.#folder, key) : '{file}')
      .replaceAll('{key}', key);
  }

  async #listen() {
    const server = createServer((request, response) => this.#answer(request, response));
    await new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => resolve(undefined));
    });
    this.#server = server;
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    this.#origin = `http://127.0.0.1:${port}`;
  }

  /**
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} response
   */
  #answer(request, response) {
    const [, ms, key] = String(request.url).split(/[/?#]/);
    const work = this.#works.get(key);
    // A browser's pages and workers ask, too.
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Access-Control-Allow-Headers', '*');
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('Content-Type', 'text/html');
    const isWork = work && (request.method === 'GET' || request.method === 'POST');
    if (!isWork) {
      response.statusCode = work ? 204 : 404;
      response.end();
      return;
    }
    if (!(Number(ms) > 0)) {
      work.add('effect');
      // Who pressed stop in this turn has sent it before the work can go on.
      setImmediate(() => response.end('<!doctype html><title>witness</title>seen'));
      return;
    }
    this.#hold(work, response, Number(ms));
  }

  /**
   * @param {Work} work
   * @param {import('node:http').ServerResponse} response
   * @param {number} ms
   */
  #hold(work, response, ms) {
    let pieces = 0;
    work.add('begin');
    // A connection that is kept would look like work that goes on.
    response.setHeader('Connection', 'close');
    response.write('<!doctype html><title>witness</title><p>');
    const timer = setInterval(() => {
      pieces++;
      work.add('beat');
      response.write(`${'.'.repeat(80)}\n`);
      if (pieces < PIECES) return;
      clearInterval(timer);
      response.end('</p>');
    }, ms / PIECES);
    response.once('close', () => {
      clearInterval(timer);
      work.add('end');
    });
  }

  #watchFolder() {
    const folder = mkdtempSync(join(tmpdir(), 'stopcheck-'));
    this.#folder = folder;
    this.#watcher = watch(folder, (_event, name) => {
      const work = this.#works.get(String(name));
      if (!work) return;
      const path = join(folder, String(name));
      const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
      while (work.amount < lines) work.add('effect');
    });
  }

  close() {
    this.#watcher?.close();
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true });
    this.#server?.closeAllConnections();
    this.#server?.close();
  }
}
