import { CallOptions, PortMessenger, connect } from 'penpal';

export async function host({ port }) {
  const connection = connect({ messenger: new PortMessenger({ port }) });
  const remote = await connection.promise;
  return {
    echo: (params) => remote.echo(params),
    size: (bytes) => remote.size(bytes),
    move: (bytes) => remote.size(bytes, new CallOptions({ transferables: [bytes.buffer] })),
    pend: (params) => void remote.pend(params).catch(() => {}),
    close: () => connection.destroy(),
  };
}

export const app = ({ port }, { echo, size, pend }) =>
  connect({ messenger: new PortMessenger({ port }), methods: { echo, size, pend } });
