import { CallOptions, PortMessenger, connect } from 'penpal';

export async function host({ port }) {
  const connection = connect({ messenger: new PortMessenger({ port }) });
  const remote = await connection.promise;
  return {
    echo: (params, transferables) =>
      transferables ? remote.echo(params, new CallOptions({ transferables })) : remote.echo(params),
    pend: () => void remote.pend().catch(() => {}),
    close: () => connection.destroy(),
  };
}
export const app = ({ port }, { echo }) =>
  connect({
    messenger: new PortMessenger({ port }),
    methods: { echo, pend: () => new Promise(() => {}) },
  });
