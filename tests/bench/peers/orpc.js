import { createORPCClient } from '@orpc/client';
import { RPCLink } from '@orpc/client/message-port';
import { os } from '@orpc/server';
import { RPCHandler } from '@orpc/server/message-port';

export async function host({ port }) {
  const client = createORPCClient(new RPCLink({ port }));
  port.start();
  return {
    echo: (params) => client.echo(params),
    size: (bytes) => client.size(new Blob([bytes])),
    wait: (signal) => client.wait({}, { signal }).catch((error) => error),
    pend: (params) => void client.pend(params).catch(() => {}),
    stream: (params) => client.rows(params),
    close: () => port.close(),
  };
}

export function app({ port }, { echo, size, wait, pend, rows }) {
  const router = {
    echo: os.handler(({ input }) => echo(input)),
    size: os.handler(async ({ input }) => size(new Uint8Array(await input.arrayBuffer()))),
    wait: os.handler(({ signal }) => wait(signal)),
    pend: os.handler(pend),
    rows: os.handler(async function* ({ input }) {
      yield* rows(input);
    }),
  };
  new RPCHandler(router).upgrade(port);
  port.start();
}
