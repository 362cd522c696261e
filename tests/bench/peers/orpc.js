import { createORPCClient } from '@orpc/client';
import { RPCLink } from '@orpc/client/message-port';
import { os } from '@orpc/server';
import { RPCHandler } from '@orpc/server/message-port';

export async function host({ port }) {
  const client = createORPCClient(new RPCLink({ port }));
  port.start();
  return {
    echo: (params) => client.echo(params),
    wait: (signal) => client.wait({}, { signal }).catch((error) => error),
    pend: () => void client.wait({}).catch(() => {}),
    close: () => port.close(),
  };
}
export function app({ port }, { echo, wait }) {
  const router = {
    echo: os.handler(({ input }) => echo(input)),
    wait: os.handler(({ signal }) => wait(signal)),
  };
  new RPCHandler(router).upgrade(port);
  port.start();
}
