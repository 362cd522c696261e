import { createBirpc } from 'birpc';

const channel = (port) => ({
  post: (data) => port.postMessage(data),
  on: (heard) => (port.onmessage = ({ data }) => heard(data)),
  timeout: -1,
});

export async function host({ port }) {
  const rpc = createBirpc({}, channel(port));
  return {
    echo: (params) => rpc.echo(params),
    size: (bytes) => rpc.size(bytes),
    pend: (params) => void rpc.pend(params).catch(() => {}),
    close: () => port.close(),
  };
}

export const app = ({ port }, { echo, size, pend }) =>
  createBirpc({ echo, size, pend }, channel(port));
