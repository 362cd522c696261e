/**
 * Plain apps that implement `window.abp` in their own page, written from the protocol's text alone.
 * They share no code with js/. The oddities are those that the text allows, by silence or by
 * contradicting itself.
 */

const failure = (code, message, more) => ({
  success: false,
  error: { code, message, retryable: false },
  ...more,
});
const CANCELLED = failure('CANCELLED', 'cancelled', { cancelled: true });

/**
 * @param {Record<string, (params: any, context: any) => any>} handlers
 * @param {object} odd
 * @param {'object' | 'false' | 'throws' | 'none' | 'alias' | 'boolean' | 'silent'} [odd.cancel]
 *   takes an object; always answers `false`; throws; is not there; is `__abp_cancel` instead;
 *   answers with a bare boolean; answers with nothing
 * @param {'sync' | 'empty' | 'envelope' | 'throws' | 'none' | 'hangs'} [odd.list] what
 *   `listCapabilities` does
 * @param {'few' | 'none'} [odd.capabilities] what `initialize` says of them
 * @param {'fails' | 'throws'} [odd.sample] takes the protocol's sample at its word, which aborts
 *   with the reason as it is and knows a cancelled call by the error's name: one with a string for
 *   a reason has failed, or throws
 * @param {boolean} [odd.strict] whether it refuses a second session
 * @param {boolean} [odd.noCallId] whether it knows calls by no id
 * @param {string[]} [odd.emit] how it tells the agent: `globals`, `legacy` (`__abpOn…`), `notify`
 *   (one callback that takes { method, params }), `property` (`abp.onProgress = …`), `registrar`
 *   (`abp.onProgress(…)`)
 * @returns {any} `window.abp`
 */
export function plainPage(handlers, odd = {}) {
  const emit = odd.emit ?? ['globals'];
  let serial = 0;
  const running = new Map();
  const done = new Map();
  const registered = {};
  /** Calls whatever listens for an event, in each of the ways that this app knows. */
  function tell(kind, globalName, ...args) {
    let answer;
    for (const way of emit) {
      const [target, form] = {
        globals: [window[globalName], args],
        legacy: [window[`__abpOn${kind}`], args],
        notify: [
          kind === 'Notification' && window.__abp_notify,
          [{ method: args[0].event, params: args[0].data }],
        ],
        property: [
          abp[`on${kind}`],
          kind === 'Notification' ? [args[0].event, args[0].data] : args,
        ],
        registrar: [
          registered[kind],
          kind === 'Notification' ? [args[0].event, args[0].data] : args,
        ],
      }[way];
      const said = typeof target === 'function' ? target(...form) : undefined;
      answer ??= said;
    }
    return answer;
  }
  const list = () =>
    Object.keys(handlers).map((name) => ({
      name,
      description: `Does ${name}`,
      available: true,
      handler() {},
    }));
  function stop(callId, reason) {
    if (!abp.initialized)
      return { callId, cancelled: false, error: failure('NOT_INITIALIZED').error };
    if (running.has(callId)) {
      running
        .get(callId)
        .abort(odd.sample ? reason : new DOMException(reason ?? 'cancelled', 'AbortError'));
      return { callId, cancelled: true };
    }
    if (!done.has(callId)) return { callId, cancelled: false, reason: 'Operation not found' };
    if (done.get(callId)) return { callId, cancelled: true };
    return { callId, cancelled: false, reason: 'Operation already completed' };
  }
  const abp = {
    protocolVersion: '0.1',
    app: { id: 'plain.page', name: 'Plain page', version: '1' },
    initialized: false,
    sessionId: null,
    async initialize(params) {
      if (odd.strict && abp.initialized) {
        const code = 'ALREADY_INITIALIZED';
        throw Object.assign(new Error('There is a session'), { code, retryable: false });
      }
      abp.agent = params.agent;
      abp.initialized = true;
      abp.sessionId = `session-${++serial}`;
      return {
        sessionId: abp.sessionId,
        protocolVersion: '0.1',
        app: abp.app,
        capabilities:
          odd.capabilities === 'none' ? [] : list().map(({ name }) => ({ name, available: true })),
        features: {
          notifications: true,
          progress: true,
          elicitation: true,
          dynamicCapabilities: true,
        },
      };
    },
    async shutdown() {
      abp.initialized = false;
      abp.sessionId = null;
      for (const controller of running.values()) controller.abort();
    },
    async call(capability, params = {}, options = {}) {
      if (!abp.initialized) return failure('NOT_INITIALIZED', 'initialize first');
      if (!Object.hasOwn(handlers, capability)) return failure('UNKNOWN_CAPABILITY', 'no');
      const callId = odd.noCallId ? `mine-${++serial}` : options.callId;
      if (running.has(callId)) return failure('INVALID_PARAMS', 'callId is in use');
      const controller = new AbortController();
      running.set(callId, controller);
      let answer;
      try {
        const data = await handlers[capability](params, {
          callId,
          signal: controller.signal,
          progress: (info) =>
            options.progressToken &&
            tell('Progress', '__abp_progress', { operationId: options.progressToken, ...info }),
          elicit: (request) => abp.elicit(request),
        });
        answer = { success: true, data };
      } catch (error) {
        if (odd.sample === 'throws') throw error;
        answer =
          error?.name === 'AbortError' ? CANCELLED : failure('OPERATION_FAILED', error.message);
      }
      running.delete(callId);
      const { aborted } = controller.signal;
      done.set(callId, aborted || answer.cancelled === true);
      return aborted && !odd.sample ? CANCELLED : answer;
    },
    cancel:
      {
        false: async () => ({ callId: '', cancelled: false }),
        throws: () => {
          throw new Error('no cancel today');
        },
        object: async ({ callId, reason }) => stop(callId, reason),
        boolean: async (callId, reason) => stop(callId, reason).cancelled,
        silent: async () => {},
      }[odd.cancel] ?? (async (callId, reason) => stop(callId, reason)),
    listCapabilities:
      {
        sync: () => list(),
        empty: async () => [],
        envelope: async () => ({ success: true, data: list() }),
        throws: () => {
          throw new Error('no list today');
        },
        hangs: () => new Promise(() => {}),
      }[odd.list] ?? (async () => list()),
    notify: (event, data) => void tell('Notification', '__abp_notification', { event, data }),
    notifyProgress: (info) => void tell('Progress', '__abp_progress', info),
    notifyChanges: (changes) =>
      void tell('CapabilitiesChanged', '__abp_capabilities_changed', changes),
    async elicit(request) {
      return (
        (await tell('Elicitation', '__abp_elicitation', request)) ??
        failure('NOT_SUPPORTED', 'nobody')
      );
    },
  };
  if (odd.cancel === 'alias') window.__abp_cancel = abp.cancel;
  if (['alias', 'none'].includes(odd.cancel)) delete abp.cancel;
  if (odd.list === 'none') delete abp.listCapabilities;
  if (emit.includes('registrar')) {
    for (const kind of ['Notification', 'Progress', 'Elicitation', 'CapabilitiesChanged']) {
      abp[`on${kind}`] = (handler) => void (registered[kind] = handler);
    }
  }
  return abp;
}
