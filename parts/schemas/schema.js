/**
 * Validates values by JSON Schema, with a library that needs no `eval`. Loaded when a capability
 * has a schema.
 */
import { Validator } from '@cfworker/json-schema';
import { bytesToText } from '../../js/binary/binary.js';
import { requireBounded } from '../../js/untrusted/bounds.js';
import { checkedRun as checkedRunBy } from './checked.js';
import { safely } from '../../js/common/errors.js';
import { isRecord } from '../../js/common/values.js';

/** Values that `uniqueItems` may compare, which is quadratic: lists of 2,900 numbers. */
const MAX_COMPARISONS = 2 ** 23;

/**
 * `checkedRun` of checked.js for a capability that has JSON Schemas. One file loads both.
 * @param {string} name
 * @param {import('../../js/app/registry.js').Entry} entry
 */
export const checkedRun = (name, entry) => checkedRunBy(name, entry, checkerFor);

/**
 * Makes a checker of a JSON Schema, draft 2020-12. Throws with the place and the reason if the
 * schema is invalid.
 * @type {import('./checked.js').CheckerFor}
 */
function checkerFor(schema, what) {
  const fault = faultOf(schema, '#', 0);
  if (fault) throw new TypeError(fault);
  const validator = new Validator(schema, '2020-12', false);
  // The validator throws for values that JSON cannot represent, such as a member that is undefined.
  const validate = (/** @type {unknown} */ value) => safely(() => validator.validate(value));
  // Only params come from outside.
  const comparesItems = what === 'params' && JSON.stringify(schema).includes('"uniqueItems":true');
  return (value) => {
    if (comparesItems && comparisonsOf(value) > MAX_COMPARISONS) {
      const message = 'has lists that are too long to be compared for uniqueItems';
      return { value, faults: [{ path: what, keyword: 'uniqueItems', message }] };
    }
    const asIs = validate(value);
    if (asIs?.valid) return { value };
    const text = safely(() => asText(value));
    // A schema may describe bytes as base64, their form over transports that carry only text.
    const asSent = text && (text.hasBytes || !asIs) ? validate(text.value) : undefined;
    if (asSent?.valid) return { value };
    const faults = ((asIs ?? asSent)?.errors ?? [])
      // Outer errors only report that there are inner ones.
      .filter(({ keyword }) => keyword !== 'properties' && keyword !== 'items')
      .map(({ instanceLocation, keyword, error }) => ({
        path: instanceLocation.replace(/^#/, what),
        keyword,
        message: error,
      }));
    return { value, faults };
  };
}

/**
 * The number of values to compare if each item of each list is compared with each other.
 * @param {unknown} value within bounds
 */
function comparisonsOf(value) {
  let comparisons = 0;
  requireBounded(value, {}, (list, values) => {
    if (Array.isArray(list)) comparisons += list.length * values;
  });
  return comparisons;
}

/**
 * Converts a value to its form over a transport that carries only text.
 * @param {unknown} value
 */
function asText(value) {
  requireBounded(value);
  let hasBytes = false;
  const text = JSON.stringify(value, function (key, part) {
    const written = bytesToText.call(this, key, part);
    hasBytes ||= written !== part;
    return written;
  });
  return { value: JSON.parse(text), hasBytes };
}

const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'integer', 'string'];
const MAX_DEPTH = 64;

/** @param {unknown} value */
const isText = (value) => typeof value === 'string';

/**
 * The types of keywords: the validator ignores a keyword of the wrong type.
 * @type {[names: string, is: string, holds: (value: any) => unknown][]}
 */
const KEYWORDS = [
  [
    'type',
    `one of ${TYPES.join(', ')}, or a list of them`,
    (value) => [value].flat().every((name) => TYPES.includes(name)),
  ],
  ['required', 'a list of names', (value) => Array.isArray(value) && value.every(isText)],
  ['enum allOf anyOf oneOf prefixItems', 'a list', Array.isArray],
  [
    'pattern',
    'a regular expression, as text',
    (value) => isText(value) && safely(() => new RegExp(value, 'u')),
  ],
  ['format $ref $id', 'text', isText],
  [
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minProperties maxProperties',
    'a number',
    (value) => typeof value === 'number',
  ],
  ['properties patternProperties dependentSchemas $defs', 'an object of schemas', isRecord],
];

/** The keywords that contain one schema, and those that contain several, in a list or by name. */
const ONE = ['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains'];
const SEVERAL = [
  'allOf',
  'anyOf',
  'oneOf',
  'prefixItems',
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
];

/**
 * Finds a mistake in a JSON Schema that would make it accept or reject everything.
 * @param {unknown} schema
 * @param {string} path
 * @param {number} depth
 * @returns {string | undefined}
 */
function faultOf(schema, path, depth) {
  if (typeof schema === 'boolean') return undefined;
  if (!isRecord(schema)) return `${path} must be an object`;
  if (depth > MAX_DEPTH) return `${path} is nested too deep`;
  const own = /** @type {any} */ (schema);
  for (const [names, is, holds] of KEYWORDS) {
    const wrong = names.split(' ').find((name) => own[name] !== undefined && !holds(own[name]));
    if (wrong) return `${path}/${wrong} must be ${is}`;
  }
  const inner = [
    ...ONE.map((name) => [name, own[name]]),
    ...SEVERAL.flatMap((name) =>
      Object.entries(own[name] ?? {}).map(([key, part]) => [`${name}/${key}`, part]),
    ),
  ];
  for (const [name, part] of inner) {
    const fault = part === undefined ? undefined : faultOf(part, `${path}/${name}`, depth + 1);
    if (fault) return fault;
  }
  return undefined;
}
