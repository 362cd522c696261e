/**
 * What everything else is built on: an id and a table. An abort is one message, as is its answer.
 */
export async function host({ port }) {
  const waiting = new Map();
  let next = 0;
  const send = (method, params, transfer) =>
    new Promise((resolve) => {
      waiting.set(++next, resolve);
      if (transfer) port.postMessage({ id: next, method, params }, transfer);
      else port.postMessage({ id: next, method, params });
    });
  const chunks = [];
  let wake = () => {};
  port.onmessage = ({ data: { id, result, chunk } }) => {
    if (chunk !== undefined) {
      chunks.push(chunk);
      return wake();
    }
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
    pend: (params) => void send('pend', params),
    async *stream(params) {
      let ended = false;
      void send('rows', params).then(() => {
        ended = true;
        wake();
      });
      for (;;) {
        while (chunks.length) yield chunks.shift();
        if (ended) return;
        await new Promise((resolve) => (wake = resolve));
      }
    },
    close: () => port.close(),
  };
}

export function app({ port }, { echo, size, wait, pend, rows }) {
  const controllers = new Map();
  // Not an async function: that would keep the whole event for as long as a call is pending.
  port.onmessage = ({ data: { id, method, params, abort } }) => {
    const reply = (result) => port.postMessage({ id, result });
    if (abort) return controllers.get(abort).abort();
    if (method === 'echo') return reply(echo(params));
    if (method === 'size') return reply(size(params));
    if (method === 'rows') {
      for (const chunk of rows(params))
        port.postMessage({ chunk }, params.moves ? [chunk.buffer] : []);
      return reply();
    }
    if (method === 'pend') return void pend().then(reply);
    const controller = new AbortController();
    controllers.set(id, controller);
    void wait(controller.signal).then((result) => {
      controllers.delete(id);
      reply(result);
    });
  };
}
