// A plain app: the published protocol and nothing else, without abp-bridge. It counts, slowly, and can be stopped.
const host = document.referrer && new URL(document.referrer).origin;
/** @type {Map<string, AbortController>} */
const running = new Map();

/** @param {string} type @param {string | undefined} id @param {object} payload */
const post = (type, id, payload) =>
  parent.postMessage({ type, id, timestamp: Date.now(), payload }, host);

/** @param {number} to @param {AbortSignal} signal @param {string} operationId */
async function countTo(to, signal, operationId) {
  for (let progress = 1; progress <= to; progress++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    signal.throwIfAborted();
    const count = document.querySelector('#count');
    if (count) count.textContent = `Counting: ${progress}`;
    post('progress', undefined, {
      operationId,
      progress,
      total: to,
      percentage: (progress / to) * 100,
    });
  }
}

/** @param {string} id @param {any} payload */
async function call(id, { params, options }) {
  const { callId, progressToken = callId } = options;
  const controller = new AbortController();
  running.set(callId, controller);
  const aborted = () => controller.signal.aborted;
  const result = await countTo(params.to, controller.signal, progressToken).then(
    () => ({ success: true, data: { counted: params.to } }),
    ({ message }) => ({
      success: false,
      cancelled: aborted(),
      error: { code: aborted() ? 'CANCELLED' : 'OPERATION_FAILED', message, retryable: false },
    }),
  );
  running.delete(callId);
  const count = document.querySelector('#count');
  if (count) count.textContent = result.success ? 'Done' : 'Stopped';
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
      app: { id: 'example.plain', name: 'Plain app', version: '1.0' },
      capabilities: [
        {
          name: 'slow.count',
          description: 'Counts, ten a second',
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
