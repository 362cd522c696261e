/** Errors: the class that this library throws, and the protocol's error objects made from what others throw. */

/**
 * @typedef {object} ErrorObject An ABP error as it stands on the wire.
 * @property {string} code such as `INVALID_PARAMS`; unknown codes are legal
 * @property {string} message what was wrong and what to do
 * @property {boolean} retryable whether the same request may succeed later
 * @property {unknown} [details]
 * @property {number} [retryAfter] ms
 * @property {string[]} [alternatives]
 */

/**
 * The one error class of this library. Throw one from a handler to choose the code that the agent sees.
 * @extends {Error}
 */
export class AbpError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {{ retryable?: boolean, details?: unknown, retryAfter?: number, alternatives?: string[], cause?: unknown }} [more]
   */
  constructor(code, message, more = {}) {
    super(message, more);
    const { retryable = false, details, retryAfter, alternatives } = more;
    this.name = 'AbpError';
    this.code = code;
    this.retryable = retryable;
    if (details !== undefined) this.details = details;
    if (retryAfter !== undefined) this.retryAfter = retryAfter;
    if (alternatives !== undefined) this.alternatives = alternatives;
  }

  /** @param {ErrorObject} error */
  static from(error) {
    return safely(
      () => new AbpError(String(error.code ?? 'OPERATION_FAILED'), wordsOf(error), error),
      new AbpError('OPERATION_FAILED', 'The other side gave no readable error'),
    );
  }
}

/**
 * Throws unless an object has texts of these names.
 * @param {string} needed who needs what
 * @param {any} object
 * @param {...string} keys
 */
export function requireTexts(needed, object, ...keys) {
  if (keys.every((key) => typeof object?.[key] === 'string')) return;
  throw new AbpError('INVALID_PARAMS', `${needed}: { ${keys.join(', ')} }`);
}

/**
 * Reads what may throw when it is looked at: a getter, a revoked proxy, an object that is no text.
 * @template T
 * @param {() => T} read
 * @param {T} otherwise
 */
export function safely(read, otherwise) {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/**
 * Runs a callback of the page's. What it throws is the page's to see, as if nobody had called it from here,
 * and costs no other call anything.
 * @template {any[]} A
 * @template T
 * @param {((...args: A) => T) | undefined} callback
 * @param {A} args
 * @returns {T | undefined}
 */
export function callOut(callback, ...args) {
  try {
    return callback?.(...args);
  } catch (error) {
    (globalThis.reportError ?? throwLater)(error);
    return undefined;
  }
}

/** @param {unknown} error */
const throwLater = (error) =>
  queueMicrotask(() => {
    throw error;
  });

/**
 * What an error says, of whatever form it is.
 * @param {any} error
 */
const wordsOf = (error) => String(error?.message ?? error ?? 'The operation failed');

/** What browsers throw when the user or a policy says no, in the protocol's codes. */
const PERMISSION = new Map([
  ['NotAllowedError', 'PERMISSION_DENIED'],
  ['SecurityError', 'PERMISSION_REQUIRED'],
]);
const PARTS = /** @type {const} */ (['details', 'retryAfter', 'alternatives']);

/**
 * Whether something has the protocol's own shape of an error.
 * @param {any} thrown
 */
export const isErrorObject = (thrown) =>
  safely(() => typeof thrown?.code === 'string' && typeof thrown.retryable === 'boolean', false);

/**
 * The protocol's error for whatever a handler threw. An error of the protocol's own shape passes through.
 * @param {any} thrown
 * @returns {ErrorObject}
 */
export const toErrorObject = (thrown) =>
  safely(() => errorObject(thrown), {
    code: 'OPERATION_FAILED',
    message: 'What was thrown cannot be read',
    retryable: false,
  });

/**
 * @param {any} thrown
 * @returns {ErrorObject}
 */
function errorObject(thrown) {
  const message = wordsOf(thrown);
  if (isErrorObject(thrown)) {
    /** @type {ErrorObject} */
    const error = { code: thrown.code, message, retryable: thrown.retryable };
    for (const part of PARTS) if (thrown[part] !== undefined) error[part] = thrown[part];
    return error;
  }
  const code = PERMISSION.get(thrown?.name);
  return { code: code ?? 'OPERATION_FAILED', message, retryable: code !== undefined };
}

/**
 * Whether a handler says by itself that its call was cancelled.
 * @param {any} thrown
 */
export const saysCancelled = (thrown) =>
  safely(
    () => thrown?.name === 'AbortError' || (thrown?.code === 'CANCELLED' && isErrorObject(thrown)),
    false,
  );

/** Characters of a reason that are carried. */
export const LONGEST_REASON = 1024;

/**
 * The text of an abort reason, as the protocol carries it: a string as it is, an error by its message.
 * @param {any} reason
 * @returns {string | undefined}
 */
export function reasonText(reason) {
  const text = typeof reason === 'string' ? reason : safely(() => reason?.message, undefined);
  return typeof text === 'string' ? text.slice(0, LONGEST_REASON) : undefined;
}
