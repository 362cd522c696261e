import { RpcTarget, newMessagePortRpcSession } from 'capnweb';

export async function host({ port }) {
  const stub = newMessagePortRpcSession(port);
  return {
    echo: (params) => stub.echo(params),
    pend: () => void stub.pend().catch(() => {}),
    close: () => port.close(),
  };
}
export function app({ port }, { echo }) {
  class Api extends RpcTarget {
    echo(params) {
      return echo(params);
    }
    pend() {
      return new Promise(() => {});
    }
  }
  newMessagePortRpcSession(port, new Api());
}
