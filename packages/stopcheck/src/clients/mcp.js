/**
 * MCP, by the official SDKs: 1.x, and 2.x with either revision. What the server says is read from
 * its messages, since a client's promise settles before the server has said anything.
 */
import { agree, errorWord } from './words.js';

/**
 * @typedef {import('../call.js').Call} Call
 * @typedef {import('../options.js').Options} Options
 */

const KEY = 'abp-bridge/stopcheck';
const INFO = { name: 'stopcheck', version: '1' };
const CAPABILITIES = { elicitation: {}, sampling: {} };
const MODERN = '2026-07-28';
/** Characters of a result's text that are read. */
const MAX_READ = 10_000;
/** An id that no client uses. */
const NOBODY = 2 ** 31 - 1;
/** Ms: the client's own limit would be a press that nobody asked for. */
const NO_LIMIT = 2 ** 31 - 1;

/**
 * A client of the SDK 1.x, with the names of its questions and its transports.
 * @returns {Promise<any>}
 */
async function sdk1() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const types = await import('@modelcontextprotocol/sdk/types.js');
  return {
    ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
    ...(await import('@modelcontextprotocol/sdk/client/stdio.js')),
    client: new Client(INFO, { capabilities: CAPABILITIES }),
    name: '@modelcontextprotocol/sdk 1.x',
    questions: [types.ElicitRequestSchema, types.CreateMessageRequestSchema],
  };
}

/**
 * @param {boolean} isModern
 * @returns {Promise<any>}
 */
async function sdk2(isModern) {
  const sdk = await import('@modelcontextprotocol/client');
  const versionNegotiation = { mode: isModern ? { pin: MODERN } : /** @type {const} */ ('legacy') };
  return {
    ...sdk,
    ...(await import('@modelcontextprotocol/client/stdio')),
    client: new sdk.Client(INFO, { capabilities: CAPABILITIES, versionNegotiation }),
    name: '@modelcontextprotocol/client 2.x',
    questions: ['elicitation/create', 'sampling/createMessage'],
  };
}

/** Presses that name a call in a message. */
const NAMING = ['before', 'after', 'twice', 'unknown'];
const NO_MESSAGE = 'over HTTP, closing the stream is the stop: no message can name a call';

/**
 * @param {Options} options
 * @returns {import('../checked.js').Way}
 */
export const reach = (options) => ({ open: () => open(options) });

/**
 * @param {Options} options
 * @returns {Promise<import('../trial.js').Session>}
 */
async function open(options) {
  const { address: url, headers, tool, isModern } = options;
  const [command, ...args] = options.command;
  const sdk = options.sdk === '1' ? await sdk1() : await sdk2(isModern);
  const { client } = sdk;
  // What programs print for people is not about the press.
  const program = { command, args, env: process.env, stderr: 'ignore' };
  const transport = url
    ? new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    : new sdk.StdioClientTransport(program);
  /** The calls, by their keys and by the ids of their requests. @type {Map<any, Call>} */
  const calls = new Map();
  for (const question of sdk.questions)
    client.setRequestHandler(question, (/** @type {any} */ request) => answer(request, calls));
  await client.connect(transport);
  const { tools } = await client.listTools();
  if (!tools.some((/** @type {any} */ each) => each.name === tool)) {
    await client.close();
    const names = tools.map((/** @type {any} */ each) => each.name).join(', ');
    throw new Error(`There is no tool ${JSON.stringify(tool)}: there are ${names}`);
  }
  const stopId = (/** @type {number} */ requestId) =>
    transport.send({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId, reason: 'stopcheck' },
    });
  listen(transport, calls, stopId);
  /** @type {Record<string, string>} */
  const lacks =
    isModern && url ? Object.fromEntries(NAMING.map((press) => [press, NO_MESSAGE])) : {};
  return {
    client: `${sdk.name}, ${client.getNegotiatedProtocolVersion?.() ?? '2025-11-25'}`,
    pid: transport.pid ?? undefined,
    lacks,
    limits: true,
    start(each) {
      calls.set(each.key, each);
      const params = { name: tool, arguments: each.input, _meta: { [KEY]: each.key } };
      const how = {
        signal: each.controller.signal,
        timeout: each.limit ?? NO_LIMIT,
        ...(each.wantsProgress && { onprogress() {} }),
      };
      const end = () => each.end();
      client.callTool(params, ...(options.sdk === '1' ? [undefined, how] : [how])).then(end, end);
    },
    stop: (each, reason) => each.controller.abort(reason),
    stopById: (each) => each.id !== undefined && stopId(each.id),
    stopUnknown: () => stopId(NOBODY),
    ping: () => client.listTools(),
    close: () => client.close(),
  };
}

/**
 * Reads the messages of a transport that is connected.
 * @param {any} transport
 * @param {Map<any, Call>} calls
 * @param {(id: number) => unknown} stopId
 */
function listen(transport, calls, stopId) {
  const send = transport.send.bind(transport);
  transport.send = async (/** @type {any} */ message, /** @type {any} */ ...rest) => {
    const call = calls.get(message.params?._meta?.[KEY]);
    if (call) {
      calls.set(message.id, call);
      if (call.isOvertaken) await stopId(message.id);
      call.name(message.id);
    }
    return send(message, ...rest);
  };
  const receive = transport.onmessage;
  transport.onmessage = (/** @type {any} */ message, /** @type {any} */ ...rest) => {
    hear(message, calls);
    receive?.(message, ...rest);
  };
}

/**
 * @param {any} message
 * @param {Map<any, Call>} calls
 */
function hear({ id, method, params, result, error }, calls) {
  if (method === 'notifications/progress') {
    // The SDKs take the id of the request for its token.
    const { progressToken, progress } = params ?? {};
    const amount = typeof progress === 'number' ? ` ${progress}` : '';
    calls.get(progressToken)?.say('stream', 'running', `progress${amount}`);
    return;
  }
  const call = method === undefined ? calls.get(id) : undefined;
  if (!call) return;
  if (error) {
    const { code, message } = error;
    call.say('answer', errorWord(message, code), `error ${code}: ${message}`);
  } else if (result?.resultType === 'input_required')
    call.say('question', undefined, 'input required');
  else {
    const [first] = Array.isArray(result?.content) ? result.content : [];
    const text = typeof first?.text === 'string' ? first.text.slice(0, MAX_READ) : 'a result';
    call.say('answer', result?.isError ? errorWord(text) : 'finished', text);
  }
}

/**
 * Answers a question of the server. It is not said whose question it is: it belongs to the call
 * that was made last.
 * @param {any} request
 * @param {Map<any, Call>} calls
 */
async function answer({ method, params }, calls) {
  const call = [...calls.values()].findLast(({ ended }) => ended === undefined);
  call?.say('question', undefined, params?.message ?? method);
  if (call?.leavesQuestions) await new Promise(() => {});
  if (method === 'elicitation/create')
    return { action: 'accept', content: agree(params?.requestedSchema) };
  return { model: 'none', role: 'assistant', content: { type: 'text', text: 'yes' } };
}
