/**
 * Checks params and results by the schemas of their capability. Loaded when a capability has a
 * schema; for JSON Schemas together with schema.js.
 */
import { requireBounded } from '../../js/untrusted/bounds.js';
import { AbpError, toErrorObject } from '../../js/common/errors.js';
import { standardOf } from './describe.js';
import { iteratorOf } from '../../js/common/iterator-of.js';
import { isStream, markedTransfer, transfer } from '../../js/common/transfer.js';
import { isObject } from '../../js/common/values.js';
import { isResponse, unstarted } from '../../js/wire/messages.js';
import { beginAfter } from '../../js/app/waits.js';
import { warn } from '../../js/common/development.js';

/** @import { Run } from '../../js/app/registry.js' */
/**
 * @typedef {object} Fault The place where a value does not match its schema, and why.
 * @property {string} path
 * @property {string} keyword
 * @property {string} message
 */
/**
 * @typedef {object} Checked The value, which its schema may have changed, for example by adding
 *   defaults; `faults` if it does not match.
 * @property {unknown} value
 * @property {Fault[]} [faults]
 */
/** @typedef {(value: unknown) => Checked | Promise<Checked>} Checker */
/**
 * @typedef {(schema: object, what: string) => Checker} CheckerFor Makes a checker of values; `what`
 *   is their name in faults, for example `params`. Throws if the schema is invalid.
 */

/** Bounds of params that a schema checks. */
const PARAMS = { maxValues: 2 ** 17, maxDepth: 128 };

/** The most faults of params in an error, and the longest text of each, in characters. */
const MAX_FAULTS = 20;
const MAX_FAULT_LENGTH = 500;

/**
 * Makes a function that runs a handler, and checks its params before and its result afterwards.
 * @param {string} name
 * @param {import('../../js/app/registry.js').Entry} entry with its original schemas
 * @param {CheckerFor} [checkerFor] makes checkers for JSON Schemas, if it has any
 * @returns {Run}
 */
export function checkedRun(name, { run: runHandler, inputSchema, outputSchema }, checkerFor) {
  const input = checkerOf(name, 'inputSchema', inputSchema, checkerFor);
  const output = checkerOf(name, 'outputSchema', outputSchema, checkerFor);
  return async (params, context, call) => {
    const run = (/** @type {Checked} */ { value, faults }) =>
      faults
        ? unstarted(invalidParams(faults))
        : checkedResult(runHandler(value, context, call), output);
    if (!input) return run({ value: params });
    try {
      // A port keeps references, so a message of a few hundred bytes may have millions of values.
      requireBounded(params, PARAMS);
    } catch (error) {
      const why = `params: ${toErrorObject(error).message}`;
      return unstarted(new AbpError('INVALID_PARAMS', why));
    }
    const checking = input(params);
    // Not `instanceof Promise`: pages may have replaced `Promise`, as zone.js does, while async
    // functions return the engine's own promises.
    return 'then' in checking ? beginAfter(call, checking, run) : run(checking);
  };
}

/**
 * @param {string} name
 * @param {'inputSchema' | 'outputSchema'} member
 * @param {any} schema
 * @param {CheckerFor} [checkerFor]
 * @returns {Checker | undefined}
 */
function checkerOf(name, member, schema, checkerFor) {
  if (schema === undefined || schema === true) return undefined;
  const what = member === 'inputSchema' ? 'params' : 'data';
  const standard = standardOf(schema);
  if (standard) return standardCheckerFor(standard, what);
  try {
    return checkerFor?.(schema, what);
  } catch (error) {
    const why = `${member} of ${name} cannot be used: ${toErrorObject(error).message} (docs/errors.md#schemas)`;
    warn(why);
    return () => Promise.reject(new AbpError('INTERNAL_ERROR', why));
  }
}

/**
 * Makes a checker of a schema of another library that follows Standard Schema.
 * @param {import('./types.js').StandardSchema['~standard']} standard the schema's
 * @param {string} what the name of the values, such as `params`
 * @returns {Checker}
 */
const standardCheckerFor = (standard, what) => async (value) => {
  const { value: made, issues } = await standard.validate(value);
  if (!issues) return { value: made };
  const keyOf = (/** @type {any} */ segment) =>
    String(typeof segment === 'object' ? segment.key : segment);
  const faults = [...issues].map(({ path = [], message }) => ({
    path: [what, ...path.map(keyOf)].join('/'),
    keyword: standard.vendor,
    message,
  }));
  return { value, faults };
};

/**
 * The message about the first fault.
 * @param {string} what the name of the values
 * @param {Fault[]} faults
 */
function wordsOf(what, faults) {
  const [{ path, message } = { path: what, message: 'does not match the schema' }] = faults;
  return `${path}: ${message}`;
}

/**
 * The error of params that do not match their schema. Its size is bounded.
 * @param {Fault[]} faults
 */
function invalidParams(faults) {
  const short = (/** @type {string} */ text) => text.slice(0, MAX_FAULT_LENGTH);
  const details = faults
    .slice(0, MAX_FAULTS)
    .map(({ path, keyword, message }) => ({ path: short(path), keyword, message: short(message) }));
  return new AbpError('INVALID_PARAMS', short(wordsOf('params', faults)), { details });
}

/**
 * Checks a result, and returns it as its schema has changed it. The caller cannot do anything about
 * a result that does not match; the handler's author finds the error in the console.
 * @param {Checker} output
 * @param {unknown} data
 */
async function checkedData(output, data) {
  const { value, faults } = await output(data);
  if (!faults) return value;
  throw new TypeError(`The result does not match the outputSchema: ${wordsOf('data', faults)}`);
}

/**
 * @param {unknown} returning the handler's result, or a promise of it
 * @param {Checker} [output]
 */
async function checkedResult(returning, output) {
  const returned = await returning;
  const responds = isResponse(returned);
  if (!output || (responds && !returned.success)) return returned;
  if (isStream(returned)) return checkedStream(returned, output);
  const data = responds ? returned.data : returned;
  const value = await checkedData(output, data);
  if (value === data) return returned;
  const result = responds ? { ...returned, data: value } : value;
  const moved = markedTransfer(returned) ?? markedTransfer(data);
  return moved && isObject(result) ? transfer(result, moved) : result;
}

/**
 * Checks the return value of a stream, which is the data of its call. If there is none, the schema
 * does not apply to the chunks. This is not a generator, which could not be stopped before its
 * source yields the next chunk.
 * @param {unknown} source
 * @param {Checker} output
 */
function checkedStream(source, output) {
  const iterator = iteratorOf(source);
  const checked = {
    async next() {
      const { done, value } = await iterator.next();
      const isData = done && value !== undefined;
      return { done, value: isData ? await checkedData(output, value) : value };
    },
    ...(iterator.return && {
      return: (/** @type {unknown} */ reason) => iterator.return?.(reason),
    }),
    [Symbol.toStringTag]: iterator[Symbol.toStringTag],
    [Symbol.asyncIterator]: () => checked,
  };
  return checked;
}
