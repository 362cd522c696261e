/** Calls that stream. Loaded with the first of them. */
import { makeStreamedCall } from '../session/streamed-call.js';
import { CallStream } from './call-stream.js';
import { Input } from './input.js';

export { CallStream };

/**
 * Makes a call: what `makeCall` of js/session/pending-call.js does, or what makes one that streams.
 * @typedef {(endpoint: import('../session/endpoint.js').Endpoint, name: string, params: unknown, options: import('./client.js').CallOptions) => Promise<any>} Make
 */

/**
 * Makes a call whose chunks are read, whose handler reads an input, or both.
 * @param {(make: Make) => Promise<unknown>} begin makes the call
 * @param {any} source of its input: an async iterable or a `ReadableStream`; undefined if there is none
 * @param {CallStream} [stream] reads its chunks
 * @returns {Promise<any>} the response; rejects if the input is read by somebody else
 */
export async function callStreaming(begin, source, stream) {
  const input = source && new Input(source);
  try {
    return await begin((endpoint, name, params, options) =>
      makeStreamedCall(endpoint, name, params, options, { stream, input }),
    );
  } finally {
    input?.close();
  }
}
