/** Converts the protocol's responses to results of tools. */
import { MAX_MESSAGE } from './files.js';
import { OUTCOME, sentenceOf } from './outcomes.js';
import { mimeTypeOf, toPlain } from './plain.js';
import { cleanText } from './texts.js';

/** Bytes inside a message, of all parts together; more go into files. */
const MAX_INLINE = 1 << 20;
/** Bytes of a result's text inside a message. */
const MAX_TEXT = 1 << 20;
/** Characters of the preview of a text that is in a file. */
const PREVIEW = 2000;
/** Binary parts of one result. */
const MAX_PARTS = 100;
/** Characters of a failure's message. */
const MAX_FAILURE = 4096;

/**
 * @typedef {import('./plain.js').Bytes} Bytes
 * @typedef {import('./outcomes.js').Became} Became
 * @typedef {{ type: string, text?: string, [member: string]: unknown }} Block A block of content in
 *   MCP.
 * @typedef {object} ToolResult
 * @property {Block[]} content
 * @property {unknown} [structuredContent]
 * @property {boolean} [isError]
 * @property {Record<string, unknown>} [_meta]
 * @typedef {object} Delivery The data for converting a response to a tool's result.
 * @property {unknown} [outputSchema] of the tool, if it has one
 * @property {import('./files.js').ResultFiles} files
 * @property {import('./schema-checker.js').SchemaChecker} checker
 * @property {string} [owner] of the files
 * @property {import('./progress.js').Info} [progress] the latest
 */

// --- Successes -----------------------------------------------------------------------------------

/**
 * The address of the bytes, if the app gives one. Only addresses of the web: the app must not name
 * files of this machine.
 * @param {any} data
 */
function referenceOf(data) {
  const { downloadUrl, mimeType, filename, size } = data ?? {};
  if (typeof downloadUrl !== 'string' || !/^https?:/i.test(downloadUrl)) return undefined;
  if (!URL.canParse(downloadUrl)) return undefined;
  return {
    type: 'resource_link',
    uri: new URL(downloadUrl).href,
    name: cleanText(filename, 200) || 'download',
    ...(typeof mimeType === 'string' && { mimeType: cleanText(mimeType, 128) }),
    ...(Number.isSafeInteger(size) && size >= 0 && { size }),
  };
}

/**
 * A block of content that links a file.
 * @param {Bytes} found
 * @param {Delivery} delivery
 */
async function linkTo(found, { files, owner }) {
  const { uri, name, mimeType, size } = await files.keep(found, owner);
  return { type: 'resource_link', uri, name, mimeType, size };
}

/**
 * A block of content with the bytes.
 * @param {Bytes} found
 * @param {number} at its number in the result
 * @returns {Block}
 */
function blockOf({ bytes, mimeType }, at) {
  const data = Buffer.from(bytes).toString('base64');
  const [media] = mimeType.split('/');
  if (media === 'image' || media === 'audio') return { type: media, data, mimeType };
  return { type: 'resource', resource: { uri: `abp-result:///${at + 1}`, mimeType, blob: data } };
}

/**
 * @param {unknown} data
 * @param {Delivery} delivery
 * @param {object[]} [downloads]
 * @returns {Promise<ToolResult>}
 */
async function successOf(data, delivery, downloads) {
  const { outputSchema } = delivery;
  /** @type {Block[]} */
  const blocks = [];
  let room = MAX_INLINE;
  /** @type {import('./plain.js').Describe} */
  const put = async (found, rest) => {
    const { bytes, mimeType } = found;
    if (blocks.length < MAX_PARTS) {
      const fits = bytes.length <= room;
      if (fits) room -= bytes.length;
      blocks.push(fits ? blockOf(found, blocks.length) : await linkTo(found, delivery));
    }
    return { ...rest, mimeType, size: bytes.length };
  };
  const plain = await toPlain(data, put);
  await toPlain(downloads, put);
  const problem = outputSchema ? await delivery.checker.check(plain, outputSchema) : '';
  if (problem) return failureOf('OPERATION_FAILED', problem);
  const reference = referenceOf(plain);
  if (reference) blocks.unshift(reference);
  const isText = typeof plain === 'string';
  const json = JSON.stringify(plain);
  const text = isText ? plain : json;
  if (json.length <= MAX_TEXT) {
    const isObject = typeof plain === 'object' && plain !== null && !Array.isArray(plain);
    const content = [{ type: 'text', text }, ...blocks];
    return { content, ...(isObject && { structuredContent: plain }) };
  }
  const mimeType = isText ? 'text/plain' : 'application/json';
  const link = await linkTo({ bytes: Buffer.from(text), mimeType }, delivery);
  const preview = `The result has ${link.size} bytes and is in a file. It begins:\n${text.slice(0, PREVIEW).toWellFormed()}`;
  const content = [{ type: 'text', text: preview }, link, ...blocks];
  if (!outputSchema) return { content };
  // Clients reject a result without the data that its tool promises.
  if (link.size <= MAX_MESSAGE) return { content, structuredContent: plain };
  const tooLong = `The result has ${link.size} bytes, too large for structured content. It is in a file`;
  const failure = failureOf('OPERATION_FAILED', tooLong);
  return { ...failure, content: [...failure.content, link] };
}

/**
 * The content blocks of a page's tool in MCP's form, cleaned; undefined if they are only data.
 * @param {unknown} content
 */
function blocksOf(content) {
  if (!Array.isArray(content) || !content.length || content.length > MAX_PARTS) return undefined;
  const blocks = content.map((block) => {
    const { type, text, data, mimeType } = block ?? {};
    if (type === 'text' && typeof text === 'string') return { type, text: text.toWellFormed() };
    const isMedia = type === 'image' || type === 'audio';
    const isBase64 = typeof data === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(data);
    return isMedia && isBase64 ? { type, data, mimeType: mimeTypeOf(mimeType) } : undefined;
  });
  if (blocks.includes(undefined) || JSON.stringify(blocks).length > MAX_TEXT) return undefined;
  return /** @type {Block[]} */ (blocks);
}

// --- Failures ------------------------------------------------------------------------------------

/** Advice to a model for codes that mean more than whether to try again. */
const ADVICE = new Map([
  ['INVALID_PARAMS', 'Correct the arguments and call again.'],
  ['DISCONNECTED', 'The work may or may not have been done: check before you call again.'],
]);

/**
 * @param {string} code
 * @param {string} message
 * @param {{ retryable?: unknown, retryAfter?: unknown, alternatives?: unknown }} [more]
 * @param {Became} [became] the outcome of the work
 * @returns {ToolResult}
 */
export function failureOf(code, message, more = {}, became = {}) {
  const { retryable, retryAfter, alternatives } = more;
  const listed = Array.isArray(alternatives) ? alternatives.slice(0, 10) : [];
  const names = listed.map((name) => cleanText(name, 200)).filter(Boolean);
  const after = typeof retryAfter === 'number' && retryAfter >= 0 && Math.min(retryAfter, 2 ** 31);
  const error = {
    code: cleanText(code, 64) || 'OPERATION_FAILED',
    message: cleanText(message, MAX_FAILURE) || 'The operation failed',
    retryable: retryable === true,
    ...(after !== false && { retryAfter: after }),
    ...(names.length && { alternatives: names }),
  };
  const { outcome, report } = became;
  const sentence = sentenceOf(became);
  const tryAgain = error.retryable
    ? `Trying again may help${after ? ` after ${after} ms` : ''}.`
    : 'Trying again will not help.';
  const again = ADVICE.get(error.code) ?? tryAgain;
  // The outcome gives better advice, unless the work failed by itself.
  const advice = !sentence ? again : outcome === 'failed' ? `${sentence} ${again}` : sentence;
  const instead = names.length ? ` Instead: ${names.join(', ')}.` : '';
  return {
    isError: true,
    content: [{ type: 'text', text: `${error.code}: ${error.message}\n${advice}${instead}` }],
    _meta: {
      'abp-bridge/error': error,
      ...(sentence && { [OUTCOME]: { outcome, ...(report !== undefined && { report }) } }),
    },
  };
}

/**
 * The result of a call whose own result could not be delivered: for example, there is no room for
 * its file.
 * @param {any} error
 */
export const undelivered = (error) =>
  failureOf(
    'OPERATION_FAILED',
    `The app has answered, but its result could not be handed on: ${error?.message}`,
  );

/**
 * @param {import('./app.js').Result} response
 * @param {Delivery} delivery
 * @returns {Promise<ToolResult>}
 */
export async function toolResult(response, delivery) {
  const { success, data, isTool, chunks, downloads } = response;
  if (success === true) {
    const blocks = isTool && !downloads && !delivery.outputSchema && blocksOf(data?.content);
    if (blocks) return { content: blocks };
    const result = await successOf(data, delivery, downloads);
    if (!chunks || result.isError) return result;
    // The data are first: that is where clients look.
    const streamed = { ...delivery, outputSchema: undefined };
    const areTexts = chunks.every((chunk) => typeof chunk === 'string');
    const { content } = await successOf(areTexts ? chunks.join('') : chunks, streamed);
    return { ...result, content: [...result.content, ...content] };
  }
  return failureFrom(response, delivery.progress);
}

/**
 * The result of a call without success.
 * @param {import('./app.js').Response} response
 * @param {Became['progress']} [progress]
 */
export function failureFrom({ error, cancelled, metadata }, progress) {
  const { code, message, ...more } = /** @type {any} */ (error) ?? {};
  const { outcome, report } = /** @type {Became} */ (metadata ?? {});
  const word = cancelled && code !== 'TIMEOUT' ? 'CANCELLED' : code;
  return failureOf(word, message, more, { outcome, report, progress });
}
