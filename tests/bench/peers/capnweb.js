import { RpcTarget, newMessagePortRpcSession } from 'capnweb';
import { readable } from './readable.js';

export async function host({ port }) {
  const stub = newMessagePortRpcSession(port);
  return {
    echo: (params) => stub.echo(params),
    size: (bytes) => stub.size(bytes),
    pend: (params) => void stub.pend(params).catch(() => {}),
    stream: (params) => stub.rows(params),
    close: () => port.close(),
  };
}

export function app({ port }, { echo, size, pend, rows }) {
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
    rows(params) {
      return readable(rows(params));
    }
  }
  newMessagePortRpcSession(port, new Api());
}
