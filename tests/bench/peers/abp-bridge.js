import { connect, expose } from '../../../js/index.js';

const limits = { maxCalls: 1 << 19 };

export async function host({ iframe, origin }) {
  const client = await connect(iframe, { origin, limits, agent: { name: 'bench', version: '1' } });
  return {
    echo: async (params, transfer) => (await client.call('echo', params, { transfer })).data,
    wait: (signal) => client.call('wait', {}, { signal }),
    pend: () => void client.call('wait'),
    close: () => client.close(),
  };
}

export function app({ origin }, { echo, wait }) {
  const capabilities = {
    echo,
    wait: (_params, { signal }) => wait(signal),
    pend: () => new Promise(() => {}),
  };
  expose(
    { app: { id: 'bench.app', name: 'Bench', version: '1' }, capabilities },
    { origins: [origin], limits },
  );
}
