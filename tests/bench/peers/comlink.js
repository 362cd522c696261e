import { expose, proxy, transfer, wrap } from 'comlink';

export async function host({ port }) {
  const api = wrap(port);
  return {
    echo: (params) => api.echo(params),
    size: (bytes) => api.size(bytes),
    move: (bytes) => api.size(transfer(bytes, [bytes.buffer])),
    pend: (params) => void api.pend(params),
    async *stream(params) {
      const iterator = await api.rows(params);
      for (let next; !(next = await iterator.next()).done;) yield next.value;
    },
    close: () => port.close(),
  };
}

export function app({ port }, { echo, size, pend, rows }) {
  const iterate = (params) => {
    const iterator = rows(params);
    return proxy({
      next() {
        const next = iterator.next();
        return params.moves && !next.done ? transfer(next, [next.value.buffer]) : next;
      },
    });
  };
  expose({ echo, size, pend, rows: iterate }, port);
}
