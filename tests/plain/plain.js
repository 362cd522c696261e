/**
 * A plain ABP agent and a plain ABP app, written from the protocol's text alone. They share no code
 * with js/ and know nothing beyond what is published: no port, no frames. A channel is
 * `{ post, listen }`.
 */

/** @param {Window} target */
export const windowChannel = (target, origin) => ({
  post: (message, transfer = []) => target.postMessage(message, origin, transfer),
  listen: (heard) =>
    addEventListener('message', (event) => {
      if (event.source === target && event.origin === origin) heard(event.data);
    }),
});

export const portChannel = (port) => ({
  post: (message, transfer = []) => port.postMessage(message, transfer),
  listen: (heard) => {
    port.addEventListener('message', (event) => heard(event.data));
    port.start();
  },
});

export const socketChannel = (socket) => ({
  post: (message) => socket.send(JSON.stringify(message)),
  listen: (heard) => socket.addEventListener('message', ({ data }) => heard(JSON.parse(data))),
});

const envelope = (type, id, payload) => ({ type, id, timestamp: Date.now(), payload });

/** @returns a client: call, cancel, shutdown, and `sent`, a log of what it posted */
export async function plainAgent(channel, { onProgress, onElicitation, onNotification } = {}) {
  const waiting = new Map();
  const sent = [];
  const post = (message) => {
    sent.push(message);
    channel.post(message);
  };
  const ask = (type, payload, id = crypto.randomUUID()) =>
    new Promise((resolve) => {
      waiting.set(id, resolve);
      post(envelope(type, id, payload));
    });
  channel.listen(async (message) => {
    const { type, id, payload } = message ?? {};
    if (type === 'progress')
      onProgress?.({ percentage: (100 * payload.progress) / payload.total, ...payload });
    else if (type === 'notification') onNotification?.(payload);
    else if (type === 'elicitation/request') {
      post(envelope('elicitation/response', id, await onElicitation(payload)));
    } else if (/-result$/.test(type ?? '')) {
      waiting.get(id)?.(payload);
      waiting.delete(id);
    }
  });
  const hello = crypto.randomUUID();
  const answered = ask(
    'initialize',
    {
      agent: { name: 'plain', version: '1' },
      protocolVersion: '0.1',
      features: { notifications: true, progress: true, elicitation: Boolean(onElicitation) },
    },
    hello,
  );
  const again = setInterval(() => channel.post(sent[0]), 100);
  const session = await answered;
  clearInterval(again);
  const client = {
    session,
    sent,
    ask,
    cancel: (callId, reason) => ask('capabilities/cancel', { callId, reason }),
    async call(capability, params, { signal, timeout, callId = crypto.randomUUID() } = {}) {
      if (signal?.aborted) return { success: false, cancelled: true };
      const abort = () => void client.cancel(callId, signal.reason?.message ?? signal.reason);
      signal?.addEventListener('abort', abort);
      const clock = timeout && setTimeout(() => void client.cancel(callId, 'Timeout'), timeout);
      const result = await ask('capabilities/call', {
        capability,
        params,
        options: { callId, progressToken: callId },
      });
      clearTimeout(clock);
      signal?.removeEventListener('abort', abort);
      return result;
    },
    shutdown: () => post(envelope('shutdown', undefined, {})),
  };
  return client;
}

const failure = (code, message, more) => ({
  success: false,
  error: { code, message, retryable: false },
  ...more,
});
const CANCELLED = failure('CANCELLED', 'cancelled', { cancelled: true });

/**
 * @param {Record<string, (params: any, context: any) => any>} handlers
 * @param {{ deaf?: boolean, noop?: boolean, short?: boolean }} odd
 *   deaf: answers no cancel and ignores it; noop: answers each with `cancelled: false`;
 *   short: answers with the short names of the types
 */
export function plainApp(channel, handlers, odd = {}) {
  let session = null;
  let hello;
  const running = new Map();
  const done = new Map();
  const elicitations = new Map();
  const reply = (type, id, payload) =>
    channel.post(envelope(odd.short ? type.replace('capabilities/', '') : type, id, payload));
  async function call(id, { capability, params = {}, options = {} }) {
    const answer = (payload) => reply('capabilities/call-result', id, payload);
    const callId = options.callId ?? id;
    if (!session) return answer(failure('NOT_INITIALIZED', 'initialize first'));
    if (!Object.hasOwn(handlers, capability)) return answer(failure('UNKNOWN_CAPABILITY', 'no'));
    if (running.has(callId)) return answer(failure('INVALID_PARAMS', 'callId is in use'));
    const controller = new AbortController();
    running.set(callId, controller);
    let payload;
    try {
      const data = await handlers[capability](params, {
        callId,
        signal: controller.signal,
        progress: (info) =>
          channel.post(
            envelope('progress', undefined, { ...info, operationId: options.progressToken }),
          ),
        elicit: (request) =>
          new Promise((resolve) => {
            const own = `${elicitations.size + 1}`;
            elicitations.set(own, resolve);
            channel.post(envelope('elicitation/request', own, request));
          }),
      });
      payload = { success: true, data };
    } catch (error) {
      payload =
        error?.name === 'AbortError' ? CANCELLED : failure('OPERATION_FAILED', error.message);
    }
    running.delete(callId);
    const cancelled = controller.signal.aborted && !odd.deaf && !odd.noop;
    done.set(callId, cancelled || payload.cancelled === true);
    // As many published apps do, it forgets that it has accepted a cancel: what the handler came to
    // is its answer.
    answer(payload);
  }
  function cancel({ callId, reason }) {
    if (!session) return { callId, cancelled: false, error: failure('NOT_INITIALIZED').error };
    if (odd.noop) return { callId: '', cancelled: false };
    if (running.has(callId)) {
      running.get(callId).abort(new DOMException(reason ?? 'cancelled', 'AbortError'));
      return { callId, cancelled: true };
    }
    if (!done.has(callId)) return { callId, cancelled: false, reason: 'Operation not found' };
    if (done.get(callId)) return { callId, cancelled: true };
    return { callId, cancelled: false, reason: 'Operation already completed' };
  }
  channel.listen((message) => {
    const { type, id, payload } = message ?? {};
    if (type === 'initialize') {
      if (hello !== id) session = crypto.randomUUID();
      hello = id;
      channel.post(
        envelope('initialize-result', id, {
          sessionId: session,
          protocolVersion: '0.1',
          app: { id: 'plain.app', name: 'Plain', version: '1' },
          capabilities: Object.keys(handlers).map((name) => ({ name, available: true })),
          features: { notifications: true, progress: true, elicitation: true },
        }),
      );
    } else if (type === 'capabilities/call') void call(id, payload);
    else if (type === 'capabilities/cancel' && !odd.deaf) {
      reply('capabilities/cancel-result', id, cancel(payload));
    } else if (type === 'elicitation/response') elicitations.get(id)?.(payload);
    else if (type === 'shutdown') {
      session = null;
      for (const controller of running.values()) controller.abort();
    }
  });
  return {
    notify: (event, data) => channel.post(envelope('notification', undefined, { event, data })),
  };
}
