/** What both sides of MCP must know of its two eras. */
import { abortError } from '../../../js/common/signals.js';
import { copyRecord, getOwn, isObject } from '../../../js/common/values.js';
import { RpcError } from './errors.js';

/** Versions without a handshake: each request says which it is of. */
export const MODERN = ['2026-07-28'];
/** Versions that begin with `initialize`. */
export const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

const PREFIX = 'io.modelcontextprotocol/';
export const VERSION = `${PREFIX}protocolVersion`;
export const CLIENT_INFO = `${PREFIX}clientInfo`;
export const CLIENT_CAPABILITIES = `${PREFIX}clientCapabilities`;
export const SERVER_INFO = `${PREFIX}serverInfo`;

export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
export const HEADER_MISMATCH = -32020;
export const MISSING_CAPABILITY = -32021;
export const UNSUPPORTED_VERSION = -32022;

/** The request that a subscription is. */
export const LISTEN = 'subscriptions/listen';
/** What a server says of a subscription first: what it will tell. */
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** How often a server may need something more for one request. */
export const MAX_ROUNDS = 10;
/** What a server may need at once. */
const MAX_INPUTS = 64;

/** @param {unknown} value @returns {Record<string, unknown>} the value, if it is an object */
export const objectOf = (value) =>
  /** @type {Record<string, unknown>} */ (isObject(value) ? value : {});

/** The first of our versions that the other side has, too. @param {string[]} ours @param {unknown} theirs */
export const sharedVersion = (ours, theirs) =>
  ours.find((version) => Array.isArray(theirs) && theirs.includes(version));

/** @param {unknown} result */
export const needsInput = (result) => getOwn(result, 'resultType') === 'input_required';

/**
 * Whether a client may take a result for what was asked: it is complete, or of a kind that an extension defines.
 * @param {unknown} result
 * @param {unknown} capabilities the client's
 */
export function isKnownResult(result, capabilities) {
  const type = getOwn(result, 'resultType') ?? 'complete';
  const extensions = getOwn(capabilities, 'extensions');
  return type === 'complete' || (isObject(extensions) && Object.keys(extensions).length > 0);
}

/** What a client may be asked. @type {unknown[]} */
export const INPUTS = ['elicitation/create', 'sampling/createMessage', 'roots/list'];

/**
 * The capabilities that a client would have to declare to be asked something; undefined if it has.
 * @param {unknown} declared the client's capabilities
 * @param {unknown} method
 * @param {unknown} params
 * @returns {object | undefined} `{}` for a method that no client can be asked
 */
export function lackedCapabilities(declared, method, params) {
  switch (method) {
    case 'elicitation/create': {
      const elicitation = getOwn(declared, 'elicitation');
      const mode = getOwn(params, 'mode') ?? 'form';
      if (mode !== 'form' && mode !== 'url') return { elicitation: {} };
      if (!isObject(elicitation)) return { elicitation: mode === 'url' ? { url: {} } : {} };
      // A declaration without modes is that of forms.
      const isDefault = mode === 'form' && getOwn(elicitation, 'url') === undefined;
      const has = getOwn(elicitation, mode) !== undefined || isDefault;
      return has ? undefined : { elicitation: { [mode]: {} } };
    }
    case 'sampling/createMessage': {
      const sampling = getOwn(declared, 'sampling');
      const tools = ['tools', 'toolChoice'].some((key) => getOwn(params, key) !== undefined);
      const has = isObject(sampling) && (!tools || getOwn(sampling, 'tools') !== undefined);
      return has ? undefined : { sampling: tools ? { tools: {} } : {} };
    }
    case 'roots/list':
      return isObject(getOwn(declared, 'roots')) ? undefined : { roots: {} };
  }
  return {};
}

/**
 * What a server needs, answered one by one. When one of the answers fails, the others are not wanted any more.
 * @param {unknown} result its `input_required`
 * @param {AbortController} controller whose signal those who answer get
 * @param {(method: unknown, params: unknown) => unknown} ask
 * @returns {Promise<object>} what goes with the request when it is made again
 */
export async function gatherInput(result, controller, ask) {
  const inputs = Object.entries(copyRecord(getOwn(result, 'inputRequests')));
  if (inputs.length > MAX_INPUTS)
    throw new RpcError(INVALID_PARAMS, 'The server asked for too many inputs at once');
  const answers = inputs.map(async ([key, input]) => [
    key,
    await ask(getOwn(input, 'method'), getOwn(input, 'params')),
  ]);
  const requestState = getOwn(result, 'requestState');
  try {
    return {
      ...(inputs.length && { inputResponses: Object.fromEntries(await Promise.all(answers)) }),
      ...(requestState !== undefined && { requestState }),
    };
  } catch (error) {
    controller.abort(abortError('Another input that was needed at the same time failed', error));
    throw error;
  }
}

/** That a server still needs something after MAX_ROUNDS. @param {string} who */
export const tooManyRounds = (who) =>
  new RpcError(INVALID_PARAMS, `${who} asked for input ${MAX_ROUNDS} times`);
