/** What WebMCP tools return, as the protocol's responses. Everything arrives as text. */
import { copyRecord, firstOf, getOwn } from '../common/values.js';
import { textToBytes } from '../wire/binary.js';
import { isResponse } from '../wire/messages.js';

/** Parts of an MCP result that are searched for text. */
const MAX_PARTS = 64;

/**
 * Reads what a tool returned.
 * @param {unknown} said the text that WebMCP gave: JSON or, where the tool returned a string, that string
 * @returns {import('../agent/client.js').Response} the response that the tool returned, if it is one; otherwise a success
 *   with what it returned, or MCP's `isError` as a failure
 */
export function responseOf(said) {
  const value = valueOf(said);
  if (isResponse(value)) return value;
  const content = getOwn(value, 'content');
  if (!Array.isArray(content) || getOwn(value, 'isError') !== true) {
    return { success: true, ...(value !== undefined && { data: value }) };
  }
  const texts = firstOf(content, MAX_PARTS).map((part) => getOwn(part, 'text'));
  const message = texts.filter((text) => typeof text === 'string').join('\n');
  const details = copyRecord(value);
  return {
    success: false,
    error: {
      code: 'OPERATION_FAILED',
      message: message || 'The tool failed, and gave no reason',
      retryable: false,
      details,
    },
  };
}

/** @param {unknown} said */
function valueOf(said) {
  // Chromium writes `undefined` as this text; null says that the document was left.
  if (typeof said !== 'string' || said === 'undefined') return undefined;
  try {
    return JSON.parse(said, textToBytes);
  } catch {
    return said;
  }
}
