import { connect, expose, transfer } from '../../../packages/main/src/index.js';

const limits = { maxCalls: 1 << 19 };

export async function host({ iframe, origin }) {
  const client = await connect(iframe, { origin, limits, agent: { name: 'bench', version: '1' } });
  return {
    echo: (params) => client.call('echo', params),
    size: (bytes) => client.call('size', bytes),
    move: (bytes) => client.call('size', bytes, { transfer: [bytes.buffer] }),
    wait: (signal) => client.call('wait', {}, { signal }),
    pend: () => void client.call('pend'),
    stream: (params) => client.stream('rows', params),
    close: () => client.close(),
    value: ({ data }) => data,
  };
}

export function app({ origin }, { echo, size, wait, pend, rows }) {
  const capabilities = {
    echo,
    size,
    wait: (_params, { signal }) => wait(signal),
    pend,
    async *rows(params) {
      for (const chunk of rows(params))
        yield params.moves ? transfer(chunk, [chunk.buffer]) : chunk;
    },
  };
  const about = { id: 'bench.app', name: 'Bench', version: '1' };
  expose({ app: about, capabilities }, { origins: [origin], limits });
}
