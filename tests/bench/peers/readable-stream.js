/** The engine's own: a `ReadableStream` that is transferred. Its chunks are copied. */
import { readable } from './readable.js';

export async function host({ port }) {
  return {
    stream: (params) =>
      new Promise((resolve) => {
        port.onmessage = ({ data }) => resolve(data);
        port.postMessage(params);
      }),
    close: () => port.close(),
  };
}

export function app({ port }, { rows }) {
  port.onmessage = ({ data }) => {
    const stream = readable(rows(data));
    port.postMessage(stream, [stream]);
  };
}
