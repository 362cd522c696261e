/**
 * An agent's answers to its app: to a question, or to a handler that reads its input. Loaded with
 * the first one.
 */
import { isStream, markedTransfer, transferOf } from '../common/transfer.js';
import { INPUT, elicitationMethod, readResponse } from '../wire/messages.js';

/**
 * @param {import('../session/call.js').Call} call
 * @param {Pick<import('./client.js').Client, 'onElicitation'>} client
 * @returns {Promise<any>} the response
 */
export async function answerTo(call, client) {
  const { name, params, options, endpoint, signal } = call;
  // The question was withdrawn while this file was loaded.
  signal.throwIfAborted();
  const { timeout } = options;
  let value =
    name === INPUT
      ? endpoint.streams?.inputOf(call)
      : await client.onElicitation?.(
          { method: elicitationMethod(name), params, ...(timeout && { timeout }) },
          { signal },
        );
  if (isStream(value)) value = await endpoint.sendStream(call, value);
  const response = { success: true, ...(readResponse(value) ?? { data: value }) };
  call.ensureExtra().transfer = markedTransfer(value) ?? transferOf(response.data);
  return response;
}
