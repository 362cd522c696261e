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
    wait(signal) {
      const source = new CancellationTokenSource();
      signal.addEventListener('abort', () => source.cancel());
      return connection.sendRequest('wait', {}, source.token).catch((error) => error);
    },
    pend: () => void connection.sendRequest('wait', {}).catch(() => {}),
    close: () => connection.dispose(),
  };
}
export function app({ port }, { echo, wait }) {
  const connection = open(port);
  connection.onRequest('echo', echo);
  connection.onRequest('wait', (_params, token) => {
    const controller = new AbortController();
    token.onCancellationRequested(() => controller.abort());
    return wait(controller.signal);
  });
  connection.listen();
}
