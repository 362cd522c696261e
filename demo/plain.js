// A plain app: the published protocol and nothing else, without abp-bridge. A kitchen timer that
// can be stopped.
const host = document.referrer && new URL(document.referrer).origin;
/** @type {Map<string, AbortController>} */
const running = new Map();

/**
 * @param {string} type
 * @param {string | undefined} id
 * @param {object} payload
 */
const post = (type, id, payload) =>
  parent.postMessage({ type, id, timestamp: Date.now(), payload }, host);

/** @param {string} text */
const show = (text) => {
  const left = document.querySelector('#left');
  if (left) left.textContent = text;
};

/**
 * @param {number} to seconds
 * @param {AbortSignal} signal
 * @param {string} operationId
 */
async function wait(to, signal, operationId) {
  for (let tenths = 1; tenths <= to * 10; tenths++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    signal.throwIfAborted();
    show(`${Math.ceil(to - tenths / 10)} s left`);
    post('progress', undefined, {
      operationId,
      progress: tenths / 10,
      total: to,
      percentage: (tenths / to) * 10,
    });
  }
}

/**
 * @param {string} id
 * @param {any} payload
 */
async function call(id, { params, options }) {
  const { callId, progressToken = callId } = options;
  const controller = new AbortController();
  running.set(callId, controller);
  const aborted = () => controller.signal.aborted;
  const result = await wait(params.seconds, controller.signal, progressToken).then(
    () => ({ success: true, data: { rang: true } }),
    ({ message }) => ({
      success: false,
      cancelled: aborted(),
      error: { code: aborted() ? 'CANCELLED' : 'OPERATION_FAILED', message, retryable: false },
    }),
  );
  running.delete(callId);
  show(result.success ? 'Ding!' : 'Stopped');
  post('capabilities/call-result', id, result);
}

addEventListener('message', ({ data, origin, source }) => {
  if (origin !== host || source !== parent) return;
  const { type, id, payload } = data;
  if (type === 'initialize') {
    for (const controller of running.values()) controller.abort(new Error('A new session began'));
    post('initialize-result', id, {
      sessionId: crypto.randomUUID?.() ?? String(Math.random()),
      protocolVersion: '0.1',
      app: { id: 'example.plain', name: 'Kitchen timer', version: '1.0' },
      capabilities: [
        {
          name: 'timer.run',
          description: 'A kitchen timer of half a minute, in the plain app',
          available: true,
        },
      ],
      features: {
        notifications: false,
        progress: true,
        elicitation: false,
        dynamicCapabilities: false,
      },
    });
  } else if (type === 'capabilities/call') void call(id, payload);
  else if (type === 'capabilities/cancel') {
    const controller = running.get(payload.callId);
    post('capabilities/cancel-result', id, {
      callId: payload.callId,
      cancelled: Boolean(controller),
      ...(!controller && { reason: 'Operation not found' }),
    });
    controller?.abort(new Error(payload.reason ?? 'cancelled'));
  }
});
