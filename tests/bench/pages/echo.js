// The iframe of the benchmark: the same echo by this library and by a bare MessagePort.
import { expose } from '/packages/main/src/index.js';

const origin = decodeURIComponent(location.search.slice(1));
expose(
  {
    app: { id: 'bench.app', name: 'Bench', version: '1' },
    capabilities: {
      echo: (params) => params,
      take: ({ buffer }) => buffer.byteLength,
      wait: (_params, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        ),
    },
  },
  { origins: [origin] },
);
const { port1, port2 } = new MessageChannel();
port1.onmessage = ({ data }) =>
  port1.postMessage(data.buffer ? { id: data.id, size: data.buffer.byteLength } : data);
parent.postMessage('bare', origin, [port2]);
