/** Calls whose handlers stream: whoever waits sees the chunks as they come, and none is lost. */

/**
 * @typedef {import('./app.js').Client} Client
 * @typedef {import('./app.js').Response} Response
 * @typedef {(chunk: unknown, count: number) => void} OnChunk
 */

/** Chunks of a call that are kept, and what they may be together, in characters and bytes, as far as that shows. */
const MAX_CHUNKS = 2 ** 16;
const MAX_SIZE = 2 ** 26;
/** What anything but text and bytes counts for: those who send it have bounded it. */
const SOME = 1024;

/** @param {any} chunk */
const sizeOf = (chunk) => chunk?.length ?? chunk?.byteLength ?? chunk?.size ?? SOME;

/**
 * Makes a call and reads what its handler streams.
 * @param {Client} client
 * @param {string} name
 * @param {unknown} params
 * @param {Parameters<Client['call']>[2]} options
 * @param {OnChunk} [onChunk] is shown each chunk when it comes
 * @returns {Promise<Response & { chunks?: unknown[] }>} `chunks` is what was streamed before the data. Where the handler
 *   returned nothing, the chunks are the data
 */
export async function callStreamed(client, name, params, options, onChunk) {
  if (!client.features.streams) return client.call(name, params, options);
  const stream = client.stream(name, params, options);
  /** @type {unknown[]} */
  const chunks = [];
  let size = 0;
  let isFull = false;
  try {
    for await (const chunk of stream) {
      size += sizeOf(chunk);
      isFull = chunks.length === MAX_CHUNKS || size > MAX_SIZE;
      // Leaving the loop cancels the call.
      if (isFull) break;
      chunks.push(chunk);
      onChunk?.(chunk, chunks.length);
    }
  } catch {
    // Its response says what became of it.
  }
  const response = await stream.response;
  if (isFull) {
    const message = `The app streamed more than the gateway keeps: ${chunks.length} chunks`;
    const error = { code: 'OPERATION_FAILED', message, retryable: false };
    // The call was cancelled for that, and says what became of it, unless it was at its end.
    const outcome = response.success ? 'finished' : response.metadata?.outcome;
    return { success: false, error, metadata: { ...response.metadata, outcome } };
  }
  if (!chunks.length) return response;
  if (!response.success || response.data !== undefined) return { ...response, chunks };
  return { ...response, data: chunks };
}
