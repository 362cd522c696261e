import { expose, transfer as move, wrap } from 'comlink';

export async function host({ port }) {
  const api = wrap(port);
  return {
    echo: (params, transfer) => api.echo(transfer ? move(params, transfer) : params),
    pend: () => void api.pend(),
    close: () => port.close(),
  };
}
export const app = ({ port }, { echo }) =>
  expose({ echo, pend: () => new Promise(() => {}) }, port);
