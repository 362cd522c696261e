import { RpcTarget, newMessagePortRpcSession } from 'capnweb';

export async function host({ port }) {
  const stub = newMessagePortRpcSession(port);
  return {
    echo: (params) => stub.echo(params),
    size: (bytes) => stub.size(bytes),
    pend: () => void stub.pend().catch(() => {}),
    close: () => port.close(),
  };
}

export function app({ port }, { echo, size, pend }) {
  class Api extends RpcTarget {
    echo(params) {
      return echo(params);
    }
    size(bytes) {
      return size(bytes);
    }
    pend() {
      return pend();
    }
  }
  newMessagePortRpcSession(port, new Api());
}
