/** What WebMCP tools return, as the protocol's responses. Everything arrives as text. */
import { copyRecord, firstOf, getOwn, isObject } from '../../../js/common/values.js';
import { textToBytes } from '../../binary/src/binary.js';
import { isResponse } from '../../../js/wire/messages.js';

/** Parts of an MCP result that are searched for text. */
const MAX_PARTS = 64;

/**
 * Reads the answer to a call of a tool (page-tools.js).
 * @param {unknown} answer
 * @returns {unknown} the response; as it is, if the tool was not executed
 */
export const readAnswer = (answer) =>
  isObject(answer) && Object.hasOwn(answer, 'output')
    ? responseOf(getOwn(answer, 'output'))
    : answer;

/**
 * Reads what a tool returned.
 * @param {unknown} output the text that WebMCP gave: JSON or, where the tool returned a string, that string
 * @returns {import('../../../js/wire/messages.js').Response} the response that the tool returned, if it is one; otherwise a success
 *   with what it returned, or MCP's `isError` as a failure
 */
export function responseOf(output) {
  const value = valueOf(output);
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
      message: message || 'The tool failed without giving a reason',
      retryable: false,
      details,
    },
  };
}

/** @param {unknown} output */
function valueOf(output) {
  // Chromium writes `undefined` as this text; null says that the document was left.
  if (typeof output !== 'string' || output === 'undefined') return undefined;
  try {
    return JSON.parse(output, textToBytes);
  } catch {
    return output;
  }
}
