/**
 * Checks params and results by the schemas of their capability. Loaded when a capability has one:
 * JSON Schemas with schema.js.
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
 * @typedef {object} Fault Where a value breaks its schema, and why.
 * @property {string} path
 * @property {string} keyword
 * @property {string} message
 */
/**
 * @typedef {object} Checked The value, which its schema may have changed, with its defaults for
 *   example; `faults` if it breaks it.
 * @property {unknown} value
 * @property {Fault[]} [faults]
 */
/** @typedef {(value: unknown) => Checked | Promise<Checked>} Checker */
/**
 * @typedef {(schema: object, what: string) => Checker} CheckerFor Makes what checks values, called
 *   `params` for example. Throws if it is no schema.
 */

/** What params may have where a schema is to check them. */
const PARAMS = { maxValues: 2 ** 17, maxDepth: 128 };

/** Faults of params that an error names, and characters of each. */
const MAX_FAULTS = 20;
const MAX_FAULT_LENGTH = 500;

/**
 * Makes what runs a handler, and checks its params before and its result afterwards.
 * @param {string} name
 * @param {import('../../js/app/registry.js').Entry} entry with its schemas as they were given
 * @param {CheckerFor} [checkerFor] for JSON Schemas, if it has any
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
      // A port keeps references, so that what costs a few hundred bytes to send may have millions
      // of values.
      requireBounded(params, PARAMS);
    } catch (error) {
      const why = `params: ${toErrorObject(error).message}`;
      return unstarted(new AbpError('INVALID_PARAMS', why));
    }
    const checking = input(params);
    // Pages may have replaced `Promise`, as zone.js does: what is asynchronous gives the engine's
    // own.
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
 * Checks by a schema of another library, one that follows Standard Schema.
 * @param {import('./types.js').StandardSchema['~standard']} standard the schema's
 * @param {string} what the values are called: `params`
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
 * What is wrong, by the first fault.
 * @param {string} what the values are called
 * @param {Fault[]} faults
 */
function wordsOf(what, faults) {
  const [{ path, message } = { path: what, message: 'does not match the schema' }] = faults;
  return `${path}: ${message}`;
}

/**
 * What a caller is told of params that break their schema: not many times as much as it sent.
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
 * What a schema makes of a result. The caller cannot do anything about one that breaks it; the
 * handler's author finds that in the console.
 * @param {Checker} output
 * @param {unknown} data
 */
async function checkedData(output, data) {
  const { value, faults } = await output(data);
  if (!faults) return value;
  throw new TypeError(`The result does not match the outputSchema: ${wordsOf('data', faults)}`);
}

/**
 * @param {unknown} returning what the handler returns, or a promise of it
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
 * What a stream returns is its call's data. If that is nothing, a schema says nothing of its
 * chunks. It is no generator: such a one would not be stopped before its source has given its next
 * chunk.
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
