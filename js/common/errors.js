/**
 * Errors: the class that this library throws, and the conversion of any thrown value to the
 * protocol's error object.
 */

/**
 * @template {string} [Own=never] the app's own codes, where they are known
 * @typedef {object} ErrorObject An ABP error as it stands on the wire.
 * @property {import('../types/errors.js').ErrorCode<Own>} code unknown codes are legal
 * @property {string} message what was wrong and what to do
 * @property {boolean} retryable whether the same request may succeed later
 * @property {unknown} [details]
 * @property {number} [retryAfter] ms
 * @property {string[]} [alternatives]
 */

/**
 * @typedef {object} Told The outcome of a call, as in its response.
 * @property {{ outcome?: import('../types/outcome.js').CallOutcome, report?: any }} [metadata]
 * @property {Promise<import('../types/outcome.js').CallFate>} [settled]
 */

/**
 * The one error class of this library. Throw one from a handler to choose the code that the agent
 * sees.
 * @extends {Error}
 */
export class AbpError extends Error {
  /**
   * The response that contained this error, if it is the error of a call. @type {Told | undefined}
   */
  #response;

  /**
   * @param {import('../types/errors.js').ErrorCode} code one of the protocol's codes, or your own
   * @param {string} message what was wrong and what to do
   * @param {object} [more] further members of the error
   * @param {boolean} [more.retryable] whether the same request may succeed later, and can safely be
   *   made again (false)
   * @param {unknown} [more.details] anything that JSON can represent
   * @param {number} [more.retryAfter] ms to wait before the next attempt
   * @param {string[]} [more.alternatives] names of capabilities that may do instead
   * @param {unknown} [more.cause] the error behind this one; it is not sent
   */
  constructor(code, message, more = {}) {
    super(message, more);
    const { details, retryAfter, alternatives } = more;
    this.name = 'AbpError';
    /** The code: one of the protocol's, or an app's own. */
    this.code = code;
    /** True if the same request may succeed later, and can safely be made again. */
    this.retryable = more.retryable ?? false;
    /** Further details from the author of the error. */
    if (details !== undefined) this.details = details;
    /** Ms to wait before the next attempt. */
    if (retryAfter !== undefined) this.retryAfter = retryAfter;
    /** Names of capabilities that may do instead. */
    if (alternatives !== undefined) this.alternatives = alternatives;
  }

  /**
   * The outcome of the call that failed with this error, as `metadata.outcome` of its response.
   * Undefined if the error is not that of a call.
   * @returns {import('../types/outcome.js').CallOutcome | undefined}
   */
  get outcome() {
    return this.#response?.metadata?.outcome;
  }

  /**
   * The last report of that call's handler, for example of its completed and remaining work.
   * @returns {any}
   */
  get report() {
    return this.#response?.metadata?.report;
  }

  /**
   * If `outcome` is `running` or `unknown`: the later outcome of the call, as `settled` of its
   * response. The app is asked when this is first read.
   * @returns {Promise<import('../types/outcome.js').CallFate> | undefined}
   */
  get settled() {
    return this.#response?.settled;
  }

  /**
   * Makes an AbpError of an error object that a peer sent.
   * @param {ErrorObject} error as it arrived; any value is safe
   * @param {Told} [response] the response of a call that contains the error
   */
  static from(error, response) {
    const { code, message, ...more } = toErrorObject(error);
    const made = new AbpError(code, message, more);
    made.#response = response;
    return made;
  }
}

/**
 * Loads a part of this library that only some pages need. After a failure the next caller tries
 * again. Service workers have no `import()`: the error names the file that contains all parts.
 * @template T
 * @param {Promise<T>} loading what `import()` returned
 * @returns {Promise<T>} rejects with an AbpError
 */
export const loadPart = (loading) =>
  loading.catch((cause) => {
    const why = `A part of abp-bridge did not load (abp-bridge/page/bundle has all): ${reasonText(cause)} (docs/errors.md#a-file-did-not-load)`;
    throw new AbpError('TRANSPORT_ERROR', why, { retryable: true, cause });
  });

/**
 * Makes a function that runs `load` on its first call and shares the promise. After a failure the
 * next call runs `load` again. The caller handles the error.
 * @template T
 * @param {() => Promise<T>} load
 * @returns {() => Promise<T>}
 */
export function loadOnce(load) {
  /** @type {Promise<T> | undefined} */
  let loading;
  return () => {
    if (!loading) (loading = load()).catch(() => (loading = undefined));
    return loading;
  };
}

/**
 * Throws unless the given members of an object are strings.
 * @param {string} needed the beginning of the error's message
 * @param {any} object any value is safe
 * @param {...string} keys
 */
export function requireTexts(needed, object, ...keys) {
  if (keys.every((key) => typeof object?.[key] === 'string')) return;
  throw new AbpError('INVALID_PARAMS', `${needed}: { ${keys.join(', ')} }`);
}

/**
 * Reads a value that may throw: a getter, a revoked proxy, an object that cannot be converted to a
 * string.
 * @template T
 * @template [O=undefined]
 * @param {() => T} read
 * @param {O} [otherwise] what to return if that throws
 * @returns {T | O}
 */
export function safely(read, otherwise) {
  try {
    return read();
  } catch {
    return /** @type {O} */ (otherwise);
  }
}

/**
 * Runs a user's callback. If it throws, or returns a promise that rejects, the error is reported;
 * it affects no other call and does not end the process.
 * @template {unknown[]} A
 * @template T
 * @param {((...args: A) => T) | undefined} callback the callback, if there is one
 * @param {A} args its arguments
 * @returns {T | undefined} what it returned; undefined if it threw
 */
export function invokeReportingErrors(callback, ...args) {
  try {
    const returned = /** @type {any} */ (callback?.(...args));
    if (typeof returned?.then === 'function') returned.then(undefined, reportError);
    return returned;
  } catch (error) {
    reportError(error);
  }
}

/**
 * Reports an error as browsers report an uncaught one. Elsewhere it goes to the console: throwing
 * it would end a Node process.
 * @param {unknown} error
 */
export function reportError(error) {
  if (globalThis.reportError) globalThis.reportError(error);
  // Even printing the thrown value may throw.
  else safely(() => console.error('abp-bridge: a callback failed:', error));
}

/** The most values of an object in a message, and the longest lists and texts. */
const MAX_VALUES = 100;
const MAX_LENGTH = 10_000;
/** The most errors within an error in a message. */
const MAX_INNER = 5;

/**
 * The message of any thrown value: an error's message, with those of the errors within it, as in an
 * `AggregateError`; the members of any other object, as JSON.
 * @param {any} thrown
 * @param {number} [depth] the number of errors around it
 * @returns {string}
 */
function messageOf(thrown, depth = 0) {
  const content = thrown?.message || thrown || 'The operation failed';
  // A peer's value may have an object in many places, and a sparse list may claim any length.
  let left = MAX_VALUES;
  const part = (/** @type {string} */ _key, /** @type {any} */ value) => {
    if (left-- > 0 && !(value?.length > MAX_LENGTH)) return value;
  };
  const text =
    typeof content === 'object' && !content.stack
      ? JSON.stringify(content, part).slice(0, MAX_REASON_LENGTH)
      : String(content);
  const errors = thrown?.errors;
  if (!Array.isArray(errors) || depth > 2) return text;
  const inner = errors
    .slice(0, MAX_INNER + 1)
    .map((error, i) => (i < MAX_INNER ? messageOf(error, depth + 1) : '…'));
  return `${text}: ${inner.join('; ')}`;
}

/**
 * The protocol's codes for errors that browsers throw when the user or a policy denies something.
 */
const PERMISSION = /** @type {Record<string, any>} */ ({
  __proto__: null,
  NotAllowedError: 'PERMISSION_DENIED',
  SecurityError: 'PERMISSION_REQUIRED',
});

/**
 * True if a value has the form of the protocol's errors. `retryable` may be missing unless the
 * value is an `Error`.
 * @param {any} thrown
 */
export const isErrorObject = (thrown) =>
  safely(
    () =>
      typeof thrown.code === 'string' && (typeof thrown.retryable === 'boolean' || !thrown.stack),
  );

/**
 * The protocol's error for any value that a handler threw. An error in the protocol's form passes
 * through.
 * @param {any} thrown
 * @returns {ErrorObject}
 */
export const toErrorObject = (thrown) =>
  safely(() => {
    const message = messageOf(thrown);
    if (!isErrorObject(thrown)) {
      const code = PERMISSION[thrown?.name];
      return { code: code ?? 'OPERATION_FAILED', message, retryable: !!code };
    }
    /** @type {ErrorObject} */
    const error = { code: thrown.code, message, retryable: !!thrown.retryable };
    for (const part of /** @type {const} */ (['details', 'retryAfter', 'alternatives']))
      if (thrown[part] !== undefined) error[part] = thrown[part];
    return error;
  }) ?? toErrorObject('The thrown value cannot be read');

/**
 * True if a thrown value means that the handler's call was cancelled.
 * @param {any} thrown
 */
export const saysCancelled = (thrown) =>
  safely(
    () => thrown.name === 'AbortError' || (thrown.code === 'CANCELLED' && isErrorObject(thrown)),
  );

/**
 * True if an abort reason is a timeout, such as that of `AbortSignal.timeout()`.
 * @param {any} reason the signal's
 */
export const saysTimeout = (reason) =>
  typeof reason === 'object' && safely(() => reason.name === 'TimeoutError');

/** The longest reason that is sent, in characters; the rest is cut off. */
export const MAX_REASON_LENGTH = 1024;

/**
 * The text of an abort reason, as the protocol carries it: a string unchanged, an error's message.
 * @param {any} reason the signal's
 * @returns {string | undefined} at most `MAX_REASON_LENGTH` characters; undefined if it has no text
 */
export function reasonText(reason) {
  const text = typeof reason === 'string' ? reason : safely(() => reason?.message);
  return typeof text === 'string' ? text.slice(0, MAX_REASON_LENGTH) : undefined;
}
