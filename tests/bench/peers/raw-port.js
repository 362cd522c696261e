/** What everything else is built on: an id and a table. An abort is one message, as is its answer. */
export async function host({ port }) {
  const waiting = new Map();
  let next = 0;
  const send = (method, params, transfer) =>
    new Promise((resolve) => {
      waiting.set(++next, resolve);
      if (transfer) port.postMessage({ id: next, method, params }, transfer);
      else port.postMessage({ id: next, method, params });
    });
  port.onmessage = ({ data: { id, result } }) => {
    waiting.get(id)(result);
    waiting.delete(id);
  };
  return {
    echo: (params) => send('echo', params),
    size: (bytes) => send('size', bytes),
    move: (bytes) => send('size', bytes, [bytes.buffer]),
    wait(signal) {
      const settled = send('wait');
      const id = next;
      signal.addEventListener('abort', () => port.postMessage({ abort: id }), { once: true });
      return settled;
    },
    pend: () => void send('pend'),
    close: () => port.close(),
  };
}

export function app({ port }, { echo, size, wait, pend }) {
  const controllers = new Map();
  port.onmessage = async ({ data: { id, method, params, abort } }) => {
    if (abort) return controllers.get(abort).abort();
    if (method === 'echo') return port.postMessage({ id, result: echo(params) });
    if (method === 'size') return port.postMessage({ id, result: size(params) });
    if (method === 'pend') return port.postMessage({ id, result: await pend() });
    const controller = new AbortController();
    controllers.set(id, controller);
    const result = await wait(controller.signal);
    controllers.delete(id);
    port.postMessage({ id, result });
  };
}
