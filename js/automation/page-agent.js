/**
 * The part of a page transport that runs in the page. It takes the protocol's messages, calls `window.abp` accordingly,
 * and keeps the answers until they are fetched. It is injected as text, so it uses nothing but what is injected with it:
 * js/wire/clone-codec.js and js/wire/binary.js.
 */
import { fromText, toText } from '../wire/clone-codec.js';

/**
 * @typedef {import('../transports/page.js').PageEnd & {
 *   find: (ms: number) => Promise<'ready' | 'none' | 'other'>
 * }} PageAgent `find` waits for `window.abp`; `end` ends the app's session, if there is one
 */

/** @typedef {{ capability: string, params: unknown, options: { callId: string } }} CallPayload of a call */
/** @typedef {{ callId: string, reason?: unknown }} CancelPayload of a cancel */

/**
 * @param {number} piece
 * @param {any} [there] where `abp` is looked for, and the functions that apps call
 * @param {import('./page-tools.js').PageTools} [tools] taken where there is no `abp`
 * @returns {PageAgent}
 */
export function pageAgent(piece, there = globalThis, tools = undefined) {
  /** @type {any} */
  let page = there;
  /** In ms: how long a fetch waits, how long the next fetch may take to come, and how long an app is waited for. */
  const [POLL, LEASE, PATIENCE] = [25_000, 120_000, 2000];
  const LIST_CHANGED = 'notifications/capabilities/list_changed';
  /** How apps report to an agent: by functions of the page with one of these names, or by `abp.on…`. */
  /** @type {Record<string, string[]>} */
  const CALLBACKS = {
    Notification: ['__abp_notification', '__abpOnNotification', '__abp_notify'],
    Progress: ['__abp_progress', '__abpOnProgress'],
    CapabilitiesChanged: ['__abp_capabilities_changed', '__abpOnCapabilitiesChanged'],
    Elicitation: ['__abp_elicitation', '__abpOnElicitation'],
  };

  // --- The two streams -----------------------------------------------------------------------------

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
    // The agent may be gone without a word, and the app must not work for it for ever.
    if (!ended) lease = setTimeout(() => end('The agent is gone'), LEASE);
    return waiting.slice(0, piece);
  };
  const later = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

  // --- Answers -------------------------------------------------------------------------------------

  const envelope = (/** @type {object} */ message) => ({ ...message, timestamp: Date.now() });
  /** @param {unknown} message */
  async function written(message) {
    /** @type {Map<Blob, Uint8Array | undefined>} */
    const blobs = new Map();
    const text = toText(message, false, blobs);
    if (!blobs.size) return text;
    for (const blob of blobs.keys()) blobs.set(blob, new Uint8Array(await blob.arrayBuffer()));
    return toText(message, false, blobs);
  }

  /**
   * Answers with the result of some work. What it throws is converted to the protocol's error on the other side.
   * @param {string} type
   * @param {unknown} id
   * @param {() => unknown} work
   */
  async function answer(type, id, work) {
    let text;
    try {
      text = await written(envelope({ type, id, payload: await work() }));
    } catch (error) {
      const thrown = /** @type {{ message?: unknown }} */ (error) ?? String(error);
      try {
        text = await written(envelope({ type, id, thrown }));
      } catch {
        text = toText(envelope({ type, id, thrown: `${thrown.message}` }));
      }
    }
    emit(text);
  }

  // --- What apps report ----------------------------------------------------------------------------

  let serial = 0;
  /** Unanswered questions, by id. @type {Map<unknown, (response: unknown) => void>} */
  const questions = new Map();
  /** What was reported in this turn, with the channel. @type {Map<string, string>} */
  const reported = new Map();

  /**
   * Whether the same was reported already: apps that use two channels report everything twice.
   * @param {string} channel
   * @param {unknown} news
   */
  function isEcho(channel, news) {
    const text = toText(news);
    const first = reported.get(text) ?? channel;
    if (!reported.size) setTimeout(() => reported.clear());
    reported.set(text, first);
    return first !== channel;
  }

  /**
   * @param {string} channel
   * @param {object} message
   */
  function report(channel, message) {
    if (!isEcho(channel, message)) emit(toText(envelope(message)));
  }

  /**
   * The notification has only names: adds the current descriptions of these capabilities.
   * @param {string} channel
   * @param {any} changes
   */
  async function changed(channel, changes) {
    const { added, removed, changed } = changes ?? {};
    if (isEcho(channel, [LIST_CHANGED, added, removed, changed])) return;
    const names = [added, changed].flat();
    const capabilities = (await list()).filter((/** @type {any} */ c) => names.includes(c?.name));
    const data = { added, removed, changed, capabilities };
    emit(toText(envelope({ type: 'notification', payload: { event: LIST_CHANGED, data } })));
  }

  /** @type {Record<string, (channel: string, ...args: any[]) => unknown>} */
  const hear = {
    Notification(channel, first, data) {
      const payload = typeof first === 'string' ? { event: first, data } : first;
      const event = payload?.event ?? payload?.method;
      if (event === LIST_CHANGED) return changed(channel, payload.data ?? payload.params);
      return report(channel, { type: 'notification', payload });
    },
    Progress: (channel, payload) => report(channel, { type: 'progress', payload }),
    CapabilitiesChanged: changed,
    async Elicitation(_channel, payload) {
      const id = `elicitation-${++serial}`;
      emit(toText(envelope({ type: 'elicitation/request', id, payload })));
      return new Promise((resolve) => questions.set(id, resolve));
    },
  };

  /** Whether an agent is there for what the app reports. */
  let listening = false;
  /** Undoes what was installed in the page. @type {(() => void)[]} */
  const places = [];
  /** Marks functions that were installed here, and placeholders that were installed before. */
  const OURS = Symbol.for('abp-bridge.listener');
  const PLACE = Symbol.for('abp-bridge.place');

  /**
   * @param {string} kind
   * @param {string} channel
   */
  const listener =
    (kind, channel) =>
    async (/** @type {unknown[]} */ ...args) => {
      try {
        return await hear[kind](channel, ...args);
      } catch (error) {
        // An app that asks gets the error; one that reports does not.
        if (kind === 'Elicitation') throw error;
        console.warn('abp-bridge: a message could not be sent:', error);
      }
    };

  /**
   * Installs a listener in a member that may be in use. The old listener is still called, except for questions, which
   * have a single answer.
   * @param {any} holder
   * @param {string} name
   * @param {string} kind
   */
  function put(holder, name, kind) {
    const before = holder[name];
    const listen = listener(kind, name);
    if (before?.[PLACE]) {
      before.heard = (/** @type {unknown[]} */ ...args) =>
        listening ? listen(...args) : undefined;
      places.push(() => (before.heard = undefined));
      return;
    }
    const stacked = (/** @type {unknown[]} */ ...args) => {
      const heard = listening ? listen(...args) : undefined;
      if (typeof before !== 'function' || (heard && kind === 'Elicitation')) return heard;
      const other = before.apply(holder, args);
      if (!heard) return other;
      other?.catch?.(() => {});
      return heard;
    };
    holder[name] = Object.assign(stacked, { [OURS]: true });
    places.push(() => {
      if (holder[name] !== stacked) return;
      if (before === undefined) delete holder[name];
      else holder[name] = before;
    });
  }

  /**
   * Some apps have a function that takes a handler, others a property that holds one.
   * @param {any} abp
   * @param {string[]} kinds
   */
  function subscribe(abp, kinds) {
    for (const kind of kinds) {
      const name = `on${kind}`;
      const listen = listener(kind, name);
      const heard = (/** @type {unknown[]} */ ...args) => (listening ? listen(...args) : undefined);
      try {
        if (typeof abp[name] === 'function' && !abp[name][OURS]) abp[name](heard);
        else put(abp, name, kind);
      } catch {
        // An app with neither looks for the functions of the page.
      }
    }
  }

  function unsubscribe() {
    listening = false;
    for (const clear of places.splice(0).reverse()) clear();
  }

  // --- Streams -------------------------------------------------------------------------------------

  /** What is being read of Blobs in chunks: what the app says after them is sent after them. */
  let reading = Promise.resolve();
  let behind = 0;
  /** Why the stream of a call has a gap, by callId. @type {Map<string, unknown>} */
  const gaps = new Map();

  /**
   * What the protocol's interface has no functions for, apps of this library say and hear as messages. `say` is theirs;
   * without it they stream nothing.
   * @type {{ hear: (message: { payload: { callId: string } }) => void, say?: (message: object) => void }}
   */
  const link = {
    hear(message) {
      /** @type {Map<Blob, Uint8Array | undefined>} */
      const blobs = new Map();
      const text = toText(message, true, blobs);
      if (!blobs.size && !behind) return emit(text);
      behind++;
      const before = reading;
      const read = async () => {
        await before;
        try {
          emit(blobs.size ? await written(message) : text);
        } catch (error) {
          const { callId } = message.payload;
          const why = `A chunk cannot be sent: ${/** @type {Error | undefined} */ (error)?.message}`;
          gaps.set(callId, { code: 'OPERATION_FAILED', message: why, retryable: false });
          void page.abp.cancel(callId, why);
        }
        behind--;
      };
      reading = read();
    },
  };

  // --- What agents ask -----------------------------------------------------------------------------

  /** Whether the app has a session. */
  let open = false;
  let closing = Promise.resolve();
  /** @type {unknown} */
  let hello;

  /** @returns {Promise<any[]>} the capabilities; apps list them in several forms */
  async function list() {
    let said;
    try {
      said = await Promise.race([page.abp.listCapabilities?.(), later(PATIENCE)]);
    } catch {
      // Then what `initialize` returned must do.
    }
    const found = [said, said?.data, said?.capabilities, said?.data?.capabilities];
    return found.find(Array.isArray) ?? [];
  }

  /** @param {any} params */
  async function initialize(params) {
    const kinds = Object.keys(CALLBACKS).filter(
      (kind) => kind !== 'Elicitation' || params.features?.elicitation === true,
    );
    for (const kind of kinds) for (const name of CALLBACKS[kind]) put(page, name, kind);
    listening = true;
    let result;
    try {
      link.say = undefined;
      result = await page.abp.initialize({ ...params, [Symbol.for('abp-bridge.link')]: link });
      open = result?.success !== false;
    } finally {
      if (!open) unsubscribe();
      // An app that has a session is asked again, in case the session ends.
      if (!open) hello = undefined;
    }
    if (ended) void shutdown('The agent is gone');
    if (!open) return result;
    // By now it is the app itself, and not a stub that was there while it loaded.
    subscribe(page.abp, kinds);
    const capabilities = [result?.capabilities ?? [], await list()].flat();
    const features = { ...result?.features, ...(!link.say && { 'bridge.streams': undefined }) };
    return { ...result, capabilities, features };
  }

  /** The answers to cancels that are not sent yet, by callId. @type {Map<string, Promise<unknown>>} */
  const cancelling = new Map();

  /**
   * Makes a call. Its result is sent after the answers to the cancels that came before it, whichever the app has first,
   * so that an acknowledgement counts.
   * @param {CallPayload} payload
   */
  async function call({ capability, params, options }) {
    try {
      // Bytes can be sent from here, and apps of this library keep them if told so.
      const bytes = { [Symbol.for('abp-bridge.bytes')]: true };
      return await page.abp.call(capability, params, { ...options, ...bytes });
    } finally {
      const { callId } = options;
      const answered = cancelling.get(callId);
      await reading;
      if (answered) await Promise.race([answered, later(PATIENCE)]);
    }
  }

  /** Makes a call, which fails if its stream has a gap. @param {CallPayload} payload */
  async function wholeOf(payload) {
    const { callId } = payload.options;
    try {
      const response = await call(payload);
      if (gaps.has(callId)) throw gaps.get(callId);
      return response;
    } finally {
      gaps.delete(callId);
    }
  }

  /**
   * @param {unknown} id
   * @param {CancelPayload} payload
   */
  async function cancel(id, payload) {
    const { callId } = payload;
    const answered = Promise.allSettled([
      cancelling.get(callId),
      answer('capabilities/cancel-result', id, () => askToCancel(payload)),
    ]);
    cancelling.set(callId, answered);
    await answered;
    if (cancelling.get(callId) === answered) cancelling.delete(callId);
  }

  /** The protocol's own pages disagree on the arguments of `cancel`, so an app may take either form. */
  async function askToCancel(/** @type {CancelPayload} */ { callId, reason }) {
    const { abp, __abp_cancel } = page;
    const outcomes = [];
    /** @type {((() => any)[])} */
    const forms =
      typeof abp.cancel === 'function'
        ? [() => abp.cancel(callId, reason), () => abp.cancel({ callId, reason })]
        : typeof __abp_cancel === 'function'
          ? [() => __abp_cancel(callId, reason)]
          : [];
    for (const form of forms) {
      try {
        const said = await form();
        const cancelled = said === true || said?.cancelled === true;
        if (cancelled || said?.callId === callId) return { ...said, callId, cancelled };
        outcomes.push({ said });
      } catch (thrown) {
        outcomes.push({ thrown });
      }
    }
    const outcome = outcomes.find(({ said }) => said !== undefined) ?? outcomes[0];
    if (!outcome)
      throw { code: 'NOT_SUPPORTED', message: 'The app has no cancel', retryable: false };
    if ('thrown' in outcome) throw outcome.thrown;
    return { reason: 'The app did not say', ...outcome.said, callId, cancelled: false };
  }

  /** @param {string} [reason] */
  async function close(reason) {
    try {
      await Promise.race([page.abp.shutdown?.({ reason }), later(PATIENCE)]);
    } catch {
      // The session is over anyway.
    }
  }

  /** @param {string} [reason] */
  function shutdown(reason) {
    if (open) closing = close(reason);
    open = false;
    return closing;
  }

  /** @param {any} message */
  function receive(message) {
    const { type, id, payload } = message;
    switch (type) {
      case 'initialize':
        // `initialize` is repeated until it is answered.
        if (id !== hello) void answer('initialize-result', (hello = id), () => initialize(payload));
        return;
      case 'capabilities/call':
        return void answer('capabilities/call-result', id, () => wholeOf(payload));
      case 'capabilities/cancel':
        return void cancel(id, payload);
      case 'elicitation/response': {
        const settle = questions.get(id) ?? (() => link.say?.(message));
        questions.delete(id);
        return settle(payload);
      }
      case 'shutdown':
        return void shutdown(payload?.reason);
      case 'bridge/chunk':
      case 'bridge/credit':
        return link.say?.(message);
    }
  }

  /** @param {string} [reason] */
  async function end(reason) {
    if (ended) return;
    ended = true;
    clearTimeout(lease);
    there.removeEventListener('pagehide', leave);
    unsubscribe();
    for (const settle of questions.values()) settle({ success: false, cancelled: true });
    wake();
    await shutdown(reason);
  }

  const leave = () => void end('The page is left');
  there.addEventListener('pagehide', leave);

  return {
    async find(ms) {
      for (const until = performance.now() + ms; ; await later(20)) {
        const { abp } = page;
        if (typeof abp?.initialize === 'function' && typeof abp.call === 'function') return 'ready';
        if (await tools?.found()) {
          page = { abp: tools?.abp };
          return 'ready';
        }
        if (performance.now() > until) return abp === undefined ? 'none' : 'other';
      }
    },
    take(from, text) {
      const fresh = text.slice(taken - from);
      taken += fresh.length;
      const lines = fresh.split('\n');
      lines[0] = partial + lines[0];
      partial = /** @type {string} */ (lines.pop());
      for (const line of lines) receive(fromText(line));
    },
    next(received) {
      // An earlier fetch does not wait any more.
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
 * Installs placeholders for the functions that apps call to report, before their page loads. Injected as text, too.
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
