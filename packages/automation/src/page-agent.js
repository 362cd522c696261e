/**
 * The part of a page transport that runs in the page. It reads one stream of lines and writes
 * another. An app of this library exchanges the protocol's messages, one a line; requests to a
 * foreign app, and its reports, are separate lines.
 */
import { foreignApp, requireBounded } from 'abp-bridge/driver';
import { fromText, toText } from './clone-codec.js';
import { MAX_FETCH_CHARACTERS } from './page-transport.js';

/** @import { AppTransport } from 'abp-bridge/driver' */

/**
 * The result of `find`: an app of this library, a foreign one, WebMCP tools, nothing, or another
 * object of that name.
 * @typedef {'ours' | 'foreign' | 'tools' | 'none' | 'other'} Found
 */

/**
 * @typedef {import('./page-transport.js').PageEnd & { find: (ms: number) => Promise<Found> }}
 *   PageAgent `find` waits for an app
 */

/**
 * Exchanges requests and answers by lines: the agent sends requests to a foreign app, and the app
 * to the agent. A request is `{ ask, method, args }`, with its number; one without a number gets no
 * answer. An answer is `{ answer, value }`, or `{ answer, thrown }`.
 * @param {(line: object) => void} post throws if it cannot be sent
 * @param {(method: string, args: any[]) => unknown} run performs a request
 */
export function questions(post, run) {
  /**
   * The requests that wait for an answer, by number.
   * @type {Map<unknown, { resolve: (value: any) => void, reject: (thrown: unknown) => void }>}
   */
  const asked = new Map();
  let last = 0;
  return {
    asked,
    /**
     * @param {string} method
     * @param {unknown[]} args
     * @returns {Promise<any>} rejects with the value thrown there
     */
    ask(method, ...args) {
      const ask = ++last;
      // Text cannot represent `undefined`.
      while (args.length && args.at(-1) === undefined) args.pop();
      post({ ask, method, args });
      return new Promise((resolve, reject) => asked.set(ask, { resolve, reject }));
    },
    /** @param {any} line may have any type */
    async receive(line) {
      if (typeof line !== 'object' || line === null) return;
      const { ask, method, args, answer } = line;
      if (!method) {
        const waiting = asked.get(answer);
        asked.delete(answer);
        if ('thrown' in line) waiting?.reject(line.thrown);
        else waiting?.resolve(line.value);
        return;
      }
      try {
        const value = await run(method, args);
        if (ask) post({ answer: ask, value });
      } catch (error) {
        if (!ask) throw error;
        const thrown = /** @type {{ message?: unknown }} */ (error) ?? String(error);
        try {
          post({ answer: ask, thrown });
        } catch {
          post({ answer: ask, thrown: `${thrown.message}` });
        }
      }
    },
  };
}

/**
 * @param {any} [page] contains `abp`, and the functions that apps call
 * @param {import('@abp-bridge/webmcp/page-tools').PageTools} [tools] used if there is no `abp`
 * @returns {PageAgent}
 */
export function pageAgent(page = globalThis, tools = undefined) {
  /** In ms: how long a fetch waits, and how long the next fetch may take to arrive. */
  const [POLL, LEASE] = [25_000, 120_000];
  const ACCEPT = Symbol.for('abp-bridge.accept');
  /** The contents of Blobs in results. @type {WeakMap<Blob, Uint8Array>} */
  const contents = new WeakMap();

  // --- The two streams ---------------------------------------------------------------------------

  let taken = 0;
  let partial = '';
  let waiting = '';
  let fetched = 0;
  let wake = () => {};
  let ended = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let lease;

  const emit = (/** @type {string} */ text) => {
    waiting += `${text}\n`;
    wake();
  };
  const first = () => {
    // The agent may vanish without notice, and the app must not work for it for ever.
    if (!ended) lease = setTimeout(() => end(), LEASE);
    return waiting.slice(0, MAX_FETCH_CHARACTERS);
  };

  // --- An app of this library --------------------------------------------------------------------

  /**
   * Reads the Blobs of a result: it is sent as text.
   * @param {unknown} value
   */
  async function prepare(value) {
    /** @type {Set<Blob>} */
    const blobs = new Set();
    try {
      // The limits of the writer.
      requireBounded(value, { maxValues: 2 ** 24, maxCharacters: 2 ** 28 }, (object) => {
        const form = Object.prototype.toString.call(object);
        if (/Blob|File/.test(form)) blobs.add(/** @type {Blob} */ (object));
      });
    } catch {
      return value; // It cannot be sent: the error follows when it is written.
    }
    for (const blob of blobs) {
      try {
        contents.set(blob, new Uint8Array(await blob.arrayBuffer()));
      } catch (cause) {
        const { message } = /** @type {Error} */ (cause);
        throw new Error(`A Blob cannot be read: ${message}`, { cause });
      }
    }
    return value;
  }

  /** The local end of its transport. @type {AppTransport | undefined} */
  let ours;

  function accept() {
    ours = /** @type {AppTransport} */ ({
      carries: ['streams'],
      post: (message) => ended || emit(toText(message, true, contents)),
      prepare,
      onMessage() {},
      close() {
        ours = undefined;
        void end();
      },
    });
    page.abp[ACCEPT](ours);
  }

  // --- A foreign app -----------------------------------------------------------------------------

  /** @type {any} a ForeignApp */
  let foreign;
  const questioning = questions(
    (line) => emit(toText(line, false, contents)),
    async (method, [first, ...rest]) =>
      prepare(await foreign[method](first, ...(method === 'open' ? [hear] : []), ...rest)),
  );

  /**
   * @param {string} kind
   * @param {unknown} report
   * @returns {unknown}
   */
  function hear(kind, report) {
    if (kind === 'Elicitation') return questioning.ask('hear', kind, report);
    return emit(toText({ method: 'hear', args: [kind, report] }));
  }

  // --- The end -----------------------------------------------------------------------------------

  async function end(reason = 'The agent disconnected') {
    if (ended) return;
    ended = true;
    clearTimeout(lease);
    page.removeEventListener('pagehide', leave);
    for (const { resolve } of questioning.asked.values())
      resolve({ success: false, cancelled: true });
    wake();
    ours?.onClose?.();
    await foreign?.close(reason);
  }

  const leave = () => void end('The page was closed');
  page.addEventListener('pagehide', leave);

  /** @returns {Promise<Found>} */
  async function found() {
    const { abp } = page;
    if (typeof abp?.[ACCEPT] === 'function') {
      accept();
      return 'ours';
    }
    if (typeof abp?.initialize === 'function' && typeof abp.call === 'function') {
      foreign = foreignApp(page);
      return 'foreign';
    }
    if (!(await tools?.found())) return abp === undefined ? 'none' : 'other';
    foreign = foreignApp({ abp: tools?.abp });
    return 'tools';
  }

  return {
    async find(ms) {
      for (const until = performance.now() + ms; ;) {
        const what = await found();
        if (!/none|other/.test(what) || performance.now() > until) return what;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    take(from, text) {
      const fresh = text.slice(taken - from);
      taken += fresh.length;
      const lines = fresh.split('\n');
      lines[0] = partial + lines[0];
      partial = /** @type {string} */ (lines.pop());
      for (const line of lines) {
        const message = fromText(line);
        if (foreign) void questioning.receive(message);
        else ours?.onMessage(message, []);
      }
    },
    next(received) {
      // An earlier fetch stops waiting.
      wake();
      clearTimeout(lease);
      waiting = waiting.slice(received - fetched);
      fetched = received;
      if (ended && !waiting) throw new Error('The session has ended');
      if (waiting) return first();
      return new Promise((resolve) => {
        wake = () => {
          clearTimeout(timer);
          wake = () => {};
          resolve(first());
        };
        const timer = setTimeout(() => wake(), POLL);
      });
    },
    end,
  };
}

/**
 * Installs placeholders for the functions that apps call to report, before their page loads. It is
 * injected as text, so it must not refer to anything else.
 * @param {string[]} names
 */
export function keepPlaces(names) {
  const page = /** @type {any} */ (globalThis);
  for (const name of names) {
    if (page[name]) continue;
    /** @type {any} */
    const place = (/** @type {unknown[]} */ ...args) => place.heard?.(...args);
    place[Symbol.for('abp-bridge.place')] = true;
    page[name] = place;
  }
}
