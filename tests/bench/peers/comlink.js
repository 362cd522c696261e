import { expose, transfer, wrap } from 'comlink';

export async function host({ port }) {
  const api = wrap(port);
  return {
    echo: (params) => api.echo(params),
    size: (bytes) => api.size(bytes),
    move: (bytes) => api.size(transfer(bytes, [bytes.buffer])),
    pend: () => void api.pend(),
    close: () => port.close(),
  };
}

export const app = ({ port }, { echo, size, pend }) => expose({ echo, size, pend }, port);
