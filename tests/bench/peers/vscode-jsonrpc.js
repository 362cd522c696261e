import {
  BrowserMessageReader,
  BrowserMessageWriter,
  CancellationTokenSource,
  createMessageConnection,
} from 'vscode-jsonrpc/browser';

const open = (port) =>
  createMessageConnection(new BrowserMessageReader(port), new BrowserMessageWriter(port));

export async function host({ port }) {
  const connection = open(port);
  connection.listen();
  return {
    echo: (params) => connection.sendRequest('echo', params),
    size: (bytes) => connection.sendRequest('size', { bytes }),
    wait(signal) {
      const source = new CancellationTokenSource();
      signal.addEventListener('abort', () => source.cancel(), { once: true });
      return connection.sendRequest('wait', {}, source.token).catch((error) => error);
    },
    pend: (params) => void connection.sendRequest('pend', params).catch(() => {}),
    close: () => connection.dispose(),
  };
}

export function app({ port }, { echo, size, wait, pend }) {
  const connection = open(port);
  connection.onRequest('echo', echo);
  connection.onRequest('size', ({ bytes }) => size(bytes));
  connection.onRequest('pend', pend);
  connection.onRequest('wait', (_params, token) => {
    const controller = new AbortController();
    token.onCancellationRequested(() => controller.abort());
    return wait(controller.signal);
  });
  connection.listen();
}
