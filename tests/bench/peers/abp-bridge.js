import { connect, expose, transfer } from 'abp-bridge';

/**
 * So that a million calls may be pending. Tables grow with what is pending, not with what may be.
 */
const MANY = { maxCalls: (1 << 20) - 2 };

/**
 * `isPort`: over the port that is given, not the way that it finds alone. `many`: more calls than
 * by default. Where what it takes to connect is measured there are no limits: they are checked by a
 * part that few pages load.
 */
export async function host({ port, isPort, iframe, origin, many }) {
  const limits = many ? MANY : undefined;
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

export function app({ port, isPort, origin, many }, { echo, size, wait, pend, rows }) {
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
  const limits = many ? MANY : undefined;
  const about = { id: 'bench.app', name: 'Bench', version: '1' };
  expose({ app: about, capabilities }, isPort ? { port, limits } : { origins: [origin], limits });
}
