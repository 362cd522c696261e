/** Converts the protocol's responses to results of tools, and back. */
import {
  copyRecord,
  firstOf,
  fromBase64,
  getOwn,
  isRecord,
  plain,
  readError,
  requireBounded,
  safely,
  toErrorObject,
  withBase64,
} from 'abp-bridge/driver';
import { becameIn } from './calls.js';
import { OUTCOME, textsOf, defined } from './protocol.js';

/** @typedef {import('abp-bridge/driver').Response} Response */
/**
 * @typedef {object} ToolResult
 * @property {object[]} content
 * @property {unknown} [structuredContent]
 * @property {boolean} [isError]
 * @property {object} [_meta]
 */

/** Marks that `structuredContent` is `{ value }`, as it must be an object. */
const WRAPPED = 'abp-bridge/wrapped';

/**
 * The result of a tool for a call's response.
 * @param {Response} response
 * @param {boolean} whole whether the other side is of this library: then the data are not
 *   converted, bytes included
 * @returns {Promise<ToolResult>}
 */
export async function toolResult({ success, data, error, cancelled, metadata }, whole) {
  if (!success) {
    const read = readError(error ?? (cancelled ? { code: 'CANCELLED' } : {}));
    const told = whole ? read : safely(() => plain(read), { ...read, details: undefined });
    return failure(told, metadata);
  }
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
 * @param {import('abp-bridge/driver').ErrorObject} error
 * @param {Response['metadata']} [metadata] the outcome of its work
 * @returns {ToolResult}
 */
const failure = (error, { outcome, report } = {}) => ({
  isError: true,
  content: [{ type: 'text', text: `${error.code}: ${error.message}` }],
  structuredContent: { error },
  ...(outcome && { _meta: { [OUTCOME]: defined({ outcome, report }) } }),
});

/**
 * A result as JSON: bytes are blocks of content, and the object that held them has their type and
 * size.
 * @param {unknown} data
 * @returns {Promise<ToolResult>}
 */
async function plainResult(data) {
  if (data === undefined) return { content: [] };
  requireBounded(data);
  /** @type {object[]} */
  const blocks = [];
  const read = plain(await withBase64(data), (_key, part) => {
    const { content, encoding, mimeType, ...rest } = copyRecord(part);
    const isBytes = typeof content === 'string' && encoding === 'base64';
    if (!isBytes || typeof mimeType !== 'string') return part;
    blocks.push(blockOf(content, mimeType, blocks.length));
    return { mimeType, ...rest };
  });
  const text = typeof read === 'string' ? read : JSON.stringify(read);
  const content = [{ type: 'text', text }, ...blocks];
  return { content, ...(isRecord(read) && { structuredContent: read }) };
}

/**
 * @param {string} data base64
 * @param {string} mimeType
 * @param {number} at its number in the result
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
  const given = getOwn(structured, 'error');
  const known = typeof getOwn(given, 'code') === 'string' ? given : textsOf(result).join('\n');
  const error = readError(known);
  const cancelled = error.code === 'CANCELLED' && { cancelled: true };
  const metadata = /** @type {Response['metadata']} */ (becameIn(result));
  return { success: false, error, ...cancelled, ...(metadata && { metadata }) };
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
