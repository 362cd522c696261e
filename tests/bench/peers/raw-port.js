/** What everything else is built on: an id and a table. `wait` and its abort are one message each. */
export async function host({ port }) {
  const waiting = new Map();
  let next = 0;
  const send = (message, transfer) =>
    new Promise((resolve) => {
      waiting.set(++next, resolve);
      port.postMessage({ id: next, ...message }, transfer ?? []);
    });
  port.onmessage = ({ data: { id, result } }) => {
    waiting.get(id)(result);
    waiting.delete(id);
  };
  return {
    echo: (params, transfer) => send({ method: 'echo', params }, transfer),
    wait(signal) {
      const settled = send({ method: 'wait' });
      const id = next;
      signal.addEventListener('abort', () => port.postMessage({ abort: id }));
      return settled;
    },
    pend: () => void send({ method: 'wait' }),
    close: () => port.close(),
  };
}

export function app({ port }, { echo, wait }) {
  const controllers = new Map();
  port.onmessage = async ({ data: { id, method, params, abort } }) => {
    if (abort) return controllers.get(abort).abort();
    if (method === 'echo') return port.postMessage({ id, result: echo(params) });
    const controller = new AbortController();
    controllers.set(id, controller);
    const result = await wait(controller.signal);
    controllers.delete(id);
    port.postMessage({ id, result });
  };
}
