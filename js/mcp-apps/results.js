/** The protocol's responses as results of tools, and back. */
import { fromBase64 } from '../common/base64.js';
import { requireBounded } from '../common/bounds.js';
import { toErrorObject } from '../common/errors.js';
import { firstOf, getOwn, isRecord } from '../common/values.js';
import { readError } from '../wire/messages.js';
import { withBase64 } from '../wire/result-store.js';
import { recordOf, textsOf } from './protocol.js';

/** @typedef {import('../agent/client.js').Response} Response */
/** @typedef {{ content: any[], structuredContent?: any, isError?: boolean, _meta?: any }} ToolResult */

/** Says that `structuredContent` is `{ value }`, as data must be an object there. */
const WRAPPED = 'abp-bridge/wrapped';

/**
 * The result of a tool for what a call came to.
 * @param {Response} response
 * @param {boolean} whole whether the other side is ours: then the data goes as it is, bytes included
 * @returns {Promise<ToolResult>}
 */
export async function toolResult({ success, data, error, cancelled }, whole) {
  if (!success) return failure(readError(error ?? (cancelled ? { code: 'CANCELLED' } : {})));
  if (whole) {
    if (isRecord(data)) return { content: [], structuredContent: data };
    return { content: [], structuredContent: { value: data }, _meta: { [WRAPPED]: true } };
  }
  try {
    return await plainResult(data);
  } catch (cause) {
    const message = `The result cannot be sent: ${toErrorObject(cause).message}`;
    return failure({ code: 'OPERATION_FAILED', message, retryable: false });
  }
}

/**
 * @param {import('../common/errors.js').ErrorObject} error
 * @returns {ToolResult}
 */
const failure = (error) => ({
  isError: true,
  content: [{ type: 'text', text: `${error.code}: ${error.message}` }],
  structuredContent: { error },
});

/**
 * A result that is JSON: bytes are blocks of content, and what holds them says their type and size.
 * @param {unknown} data
 * @returns {Promise<ToolResult>}
 */
async function plainResult(data) {
  if (data === undefined) return { content: [] };
  requireBounded(data);
  /** @type {unknown[]} */
  const blocks = [];
  const plain = JSON.parse(JSON.stringify(await withBase64(data)), (_key, part) => {
    const { content, encoding, mimeType, ...rest } = recordOf(part);
    const isBytes = typeof content === 'string' && encoding === 'base64';
    if (!isBytes || typeof mimeType !== 'string') return part;
    blocks.push(blockOf(content, mimeType, blocks.length));
    return { mimeType, ...rest };
  });
  const text = typeof plain === 'string' ? plain : JSON.stringify(plain);
  const content = [{ type: 'text', text }, ...blocks];
  return { content, ...(isRecord(plain) && { structuredContent: plain }) };
}

/**
 * @param {string} data base64
 * @param {string} mimeType
 * @param {number} at which of the result's
 */
function blockOf(data, mimeType, at) {
  const [type] = mimeType.split('/', 1);
  if (type === 'image' || type === 'audio') return { type, data, mimeType };
  const uri = `abp-bridge:///result/${at + 1}`;
  return { type: 'resource', resource: { uri, mimeType, blob: data } };
}

/**
 * The response for a tool's result.
 * @param {unknown} result
 * @returns {Response}
 */
export function responseOf(result) {
  const structured = getOwn(result, 'structuredContent');
  if (getOwn(result, 'isError') !== true)
    return { success: true, data: dataOf(result, structured) };
  const said = getOwn(structured, 'error');
  const known = typeof getOwn(said, 'code') === 'string' ? said : textsOf(result).join('\n');
  const error = readError(known);
  return { success: false, error, ...(error.code === 'CANCELLED' && { cancelled: true }) };
}

/**
 * @param {unknown} result
 * @param {unknown} structured
 */
function dataOf(result, structured) {
  if (getOwn(getOwn(result, '_meta'), WRAPPED) === true) return getOwn(structured, 'value');
  if (structured !== undefined) return structured;
  const content = firstOf(getOwn(result, 'content'), 2);
  if (content.length !== 1) return getOwn(result, 'content');
  const [block] = content;
  const resource = getOwn(block, 'resource') ?? block;
  const text = getOwn(resource, 'text');
  if (typeof text === 'string') return text;
  const bytes = getOwn(block, 'data') ?? getOwn(resource, 'blob');
  const mimeType = getOwn(resource, 'mimeType');
  if (typeof bytes !== 'string' || typeof mimeType !== 'string') return content;
  try {
    return { content: fromBase64(bytes).buffer, mimeType };
  } catch {
    return content;
  }
}
