/** Responses of the protocol as results of tools. */
import { fromJsonSchema } from '@modelcontextprotocol/server';
import { toPlain } from './plain.js';
import { MAX_MESSAGE } from './result-files.js';
import { cleanText } from './texts.js';

/** Bytes that a message carries itself, of all parts together; what is more goes into files. */
const MAX_INLINE = 1 << 20;
/** Bytes of a result's text that a message carries itself. */
const MAX_TEXT = 1 << 20;
/** Characters of a text that is in a file, for a first look. */
const PREVIEW = 2000;
/** Parts of bytes in one result. */
const MAX_PARTS = 100;
/** Characters of a failure's message. */
const MAX_FAILURE = 4096;

/** @typedef {{ content: any[], structuredContent?: any, isError?: boolean, _meta?: any }} ToolResult */

/** @param {unknown} value */
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * An address at which the app says that its bytes are. Only the web's: what is on this machine is not the app's to name.
 * @param {any} data
 */
function referenceOf(data) {
  const { downloadUrl, mimeType, filename, size } = data ?? {};
  if (typeof downloadUrl !== 'string' || !URL.canParse(downloadUrl)) return undefined;
  const url = new URL(downloadUrl);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined;
  return {
    type: 'resource_link',
    uri: url.href,
    name: cleanText(filename, 200) || 'download',
    ...(typeof mimeType === 'string' && { mimeType: cleanText(mimeType, 128) }),
    ...(Number.isSafeInteger(size) && size >= 0 && { size }),
  };
}

/**
 * @param {import('./plain.js').Bytes} found
 * @param {import('./result-files.js').ResultFiles} files
 * @returns {Promise<any>} a block of content that names the file
 */
async function linkTo(found, files) {
  const { uri, name, mimeType, size } = await files.keep(found);
  return { type: 'resource_link', uri, name, mimeType, size };
}

/**
 * @param {import('./plain.js').Bytes} found
 * @param {number} at which of the result's
 * @returns {any} a block of content that holds the bytes
 */
function blockOf({ bytes, mimeType }, at) {
  const data = Buffer.from(bytes).toString('base64');
  if (mimeType.startsWith('image/')) return { type: 'image', data, mimeType };
  if (mimeType.startsWith('audio/')) return { type: 'audio', data, mimeType };
  return { type: 'resource', resource: { uri: `abp-result:///${at + 1}`, mimeType, blob: data } };
}

/**
 * @param {any} data
 * @param {any} outputSchema what the tool promised, if it did
 * @param {import('./result-files.js').ResultFiles} files
 * @returns {Promise<ToolResult>}
 */
async function successOf(data, outputSchema, files) {
  /** @type {any[]} */
  const blocks = [];
  let room = MAX_INLINE;
  const plain = await toPlain(data, (found, rest) => {
    const { bytes, mimeType } = found;
    if (blocks.length < MAX_PARTS) {
      const fits = bytes.length <= room;
      if (fits) room -= bytes.length;
      blocks.push(fits ? blockOf(found, blocks.length) : linkTo(found, files));
    }
    return { ...rest, mimeType, size: bytes.length };
  });
  if (outputSchema) {
    const misfit = await misfitOf(plain, outputSchema);
    if (misfit) return failureOf('OPERATION_FAILED', misfit, {});
  }
  const reference = referenceOf(plain);
  const content = [...(reference ? [reference] : []), ...(await Promise.all(blocks))];
  const json = JSON.stringify(plain);
  if (json.length <= MAX_TEXT) {
    const text = typeof plain === 'string' ? plain : json;
    content.unshift({ type: 'text', text });
    return { content, ...(isObject(plain) && { structuredContent: plain }) };
  }
  const isText = typeof plain === 'string';
  const text = isText ? plain : json;
  const link = await linkTo(
    { bytes: Buffer.from(text), mimeType: isText ? 'text/plain' : 'application/json' },
    files,
  );
  const preview = `The result has ${link.size} bytes and is in a file. It begins:\n${text.slice(0, PREVIEW).toWellFormed()}`;
  content.unshift({ type: 'text', text: preview }, link);
  if (!outputSchema) return { content };
  // Clients refuse a result without the data that its tool promises.
  if (link.size <= MAX_MESSAGE) return { content, structuredContent: plain };
  const tooLong = `The result has ${link.size} bytes, which are too many for data that is promised. They are in a file`;
  const failure = failureOf('OPERATION_FAILED', tooLong, {});
  return { ...failure, content: [...failure.content, link] };
}

/**
 * @param {unknown} data
 * @param {any} schema
 * @returns {Promise<string | undefined>} how a result breaks the app's promise
 */
async function misfitOf(data, schema) {
  let checked;
  try {
    checked = await fromJsonSchema(schema)['~standard'].validate(data);
  } catch (error) {
    return `The schema that the app promises cannot be read: ${/** @type {Error} */ (error).message}`;
  }
  if (!checked.issues) return undefined;
  const issues = checked.issues.slice(0, 5).map(({ message }) => cleanText(message, 200));
  return `The app's result does not fit the schema that it promises: ${issues.join('; ')}`;
}

/**
 * @param {string} code
 * @param {string} message
 * @param {{ retryable?: unknown, retryAfter?: unknown, alternatives?: unknown }} more
 * @returns {ToolResult}
 */
export function failureOf(code, message, { retryable, retryAfter, alternatives }) {
  const names = (Array.isArray(alternatives) ? alternatives : [])
    .slice(0, 10)
    .map((name) => cleanText(name, 200))
    .filter(Boolean);
  const after =
    typeof retryAfter === 'number' && retryAfter >= 0 ? Math.min(retryAfter, 2 ** 31) : undefined;
  const error = {
    code: cleanText(code, 64) || 'OPERATION_FAILED',
    message: cleanText(message, MAX_FAILURE) || 'The operation failed',
    retryable: retryable === true,
    ...(after !== undefined && { retryAfter: after }),
    ...(names.length && { alternatives: names }),
  };
  const again = error.retryable
    ? `Trying again may help${after ? ` after ${after} ms` : ''}.`
    : 'Trying again will not help.';
  const instead = names.length ? ` Instead: ${names.join(', ')}.` : '';
  return {
    isError: true,
    content: [{ type: 'text', text: `${error.code}: ${error.message}\n${again}${instead}` }],
    _meta: { 'abp-bridge/error': error },
  };
}

/**
 * @param {import('./app.js').Response} response
 * @param {any} outputSchema of the tool, if it has one
 * @param {import('./result-files.js').ResultFiles} files
 * @returns {Promise<ToolResult>}
 */
export async function toolResult({ success, data, error, cancelled }, outputSchema, files) {
  if (success === true) return successOf(data, outputSchema, files);
  const { code, message, ...more } = error ?? /** @type {any} */ ({});
  const timedOut = code === 'TIMEOUT';
  return failureOf(cancelled && !timedOut ? 'CANCELLED' : code, message, more);
}
