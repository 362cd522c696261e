/**
 * Translates the app's questions to MCP, and the answers back. The gateway itself answers nothing.
 */
import { cleanText } from './texts.js';

/** Characters of a question. */
const MAX_MESSAGE = 2000;
/** Fields of a form, and options of a choice. */
const MAX_FIELDS = 50;

const PRIMITIVES = new Set(['string', 'number', 'integer', 'boolean']);

/**
 * @typedef {object} Form
 * @property {{ mode: string, message: string, requestedSchema: object }} params of
 *   `elicitation/create`
 * @property {(content: any) => unknown} read reads the data of the app's answer from an accepted
 *   form
 */

/**
 * A field of MCP's forms; undefined if a form cannot show it.
 * @param {any} schema
 */
function fieldOf(schema) {
  if (!PRIMITIVES.has(schema?.type)) return undefined;
  /** @type {Record<string, unknown>} */
  const field = { type: schema.type };
  for (const key of ['title', 'description']) {
    const text = cleanText(schema[key], 500);
    if (text) field[key] = text;
  }
  for (const key of ['minimum', 'maximum', 'minLength', 'maxLength']) {
    if (Number.isFinite(schema[key])) field[key] = schema[key];
  }
  if (['email', 'uri', 'date', 'date-time'].includes(schema.format)) field.format = schema.format;
  if (typeof schema.default === (schema.type === 'integer' ? 'number' : schema.type)) {
    field.default = schema.default;
  }
  if (schema.type === 'string' && Array.isArray(schema.enum)) {
    const texts = schema.enum.filter((/** @type {unknown} */ each) => typeof each === 'string');
    field.enum = texts
      .slice(0, MAX_FIELDS)
      .map((/** @type {string} */ text) => cleanText(text, 200));
  }
  return field;
}

/**
 * @param {import('./app.js').Question} question
 * @returns {Form | undefined} undefined if no form can ask it
 */
export function formOf({ method, params }) {
  const message = cleanText(params?.message ?? params?.prompt, MAX_MESSAGE) || 'The app asks.';
  /**
   * @param {object} properties
   * @param {string[]} required
   * @param {Form['read']} read
   * @returns {Form}
   */
  const form = (properties, required, read) => ({
    params: {
      mode: 'form',
      message,
      requestedSchema: { type: 'object', properties, required },
    },
    read,
  });
  if (method === 'elicitation/confirm') {
    const confirmed = { type: 'boolean', title: 'Confirm' };
    const read = (/** @type {any} */ content) => ({ confirmed: content.confirmed === true });
    return form({ confirmed }, ['confirmed'], read);
  }
  if (method === 'elicitation/select' && Array.isArray(params?.options)) {
    /** @type {any[]} */
    const options = params.options.slice(0, MAX_FIELDS);
    const value = (/** @type {any} */ option) => option?.value ?? option;
    // Clients of both versions know this form of a choice.
    const selected = {
      type: 'string',
      enum: options.map((_option, at) => `${at + 1}`),
      enumNames: options.map((option) => cleanText(String(option?.label ?? value(option)), 200)),
    };
    return form({ selected }, ['selected'], (content) => ({
      selected: value(options[Number(content.selected) - 1]),
    }));
  }
  if (method !== 'elicitation/input' && method !== 'elicitation/preference') return undefined;
  const schema = params?.schema ?? { type: 'string', default: params?.default };
  if (schema.type !== 'object') {
    const value = fieldOf(schema);
    return value && form({ value }, ['value'], (content) => ({ value: content.value }));
  }
  const entries = Object.entries(schema.properties ?? {}).slice(0, MAX_FIELDS);
  const properties = Object.fromEntries(entries.map(([name, each]) => [name, fieldOf(each)]));
  if (!entries.length || Object.values(properties).includes(undefined)) return undefined;
  const required = [schema.required ?? []].flat().filter((name) => Object.hasOwn(properties, name));
  return form(properties, required, (content) => ({ value: content }));
}

export const DECLINED = { success: false, cancelled: true };

/**
 * The protocol's response for a person's reply to a form.
 * @param {Form} form
 * @param {any} result of `elicitation/create`
 */
export const responseOf = (form, result) =>
  result?.action === 'accept' ? { success: true, data: form.read(result.content ?? {}) } : DECLINED;
