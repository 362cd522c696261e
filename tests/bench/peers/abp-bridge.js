import { connect, expose, transfer } from 'abp-bridge';

// So that a hundred thousand calls may be pending. Tables grow with what is pending, not with what may be.
const limits = { maxCalls: (1 << 20) - 2 };

/** `isPort`: over the port that is given, not the way that it finds alone. */
export async function host({ port, isPort, iframe, origin }) {
  const agent = { name: 'bench', version: '1' };
  const client = await connect(isPort ? port : iframe, { origin, limits, agent });
  return {
    echo: (params) => client.call('echo', params),
    size: (bytes) => client.call('size', bytes),
    move: (bytes) => client.call('size', bytes, { transfer: [bytes.buffer] }),
    wait: (signal) => client.call('wait', {}, { signal }),
    pend: (params) => void client.call('pend', params),
    stream: (params) => client.stream('rows', params),
    close: () => client.close(),
    value: ({ data }) => data,
  };
}

export function app({ port, isPort, origin }, { echo, size, wait, pend, rows }) {
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
  expose({ app: about, capabilities }, isPort ? { port, limits } : { origins: [origin], limits });
}
