/** The app's questions in MCP's words, and the answers in the app's. Nothing is answered by the gateway itself. */
import { cleanText } from './texts.js';

/** Characters of a question. */
const MAX_MESSAGE = 2000;
/** Fields of a form, and options of a choice. */
const MAX_FIELDS = 50;

const PRIMITIVES = new Set(['string', 'number', 'integer', 'boolean']);
const DECLINED = { success: false, cancelled: true };

/**
 * @typedef {object} Form
 * @property {{ mode: string, message: string, requestedSchema: object }} params of `elicitation/create`
 * @property {(content: any) => unknown} read the data of the app's answer, from an accepted form
 */

/** A field as MCP's forms know it: what a form cannot show is none. @param {any} schema */
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

/** @param {string} name @param {unknown} field @param {boolean} [required] */
const oneField = (name, field, required = true) => ({
  type: 'object',
  properties: { [name]: field },
  ...(required && { required: [name] }),
});

/** @param {import('./app.js').Question} question @returns {Form | undefined} undefined for what no form can ask */
export function formOf({ method, params }) {
  const message = cleanText(params?.message ?? params?.prompt, MAX_MESSAGE) || 'The app asks.';
  if (method === 'elicitation/confirm') {
    const requestedSchema = oneField('confirmed', { type: 'boolean', title: 'Confirm' });
    return {
      params: { mode: 'form', message, requestedSchema },
      read: (content) => ({ confirmed: content?.confirmed === true }),
    };
  }
  if (method === 'elicitation/select' && Array.isArray(params?.options)) {
    const options = params.options.slice(0, MAX_FIELDS);
    const value = (/** @type {any} */ option) => option?.value ?? option;
    const shown = (/** @type {unknown} */ text) => cleanText(String(text), 200);
    // Clients of both versions know this form of a choice.
    const field = {
      type: 'string',
      enum: options.map((/** @type {unknown} */ _option, /** @type {number} */ at) => `${at + 1}`),
      enumNames: options.map((/** @type {any} */ option) => shown(option?.label ?? value(option))),
    };
    return {
      params: { mode: 'form', message, requestedSchema: oneField('selected', field) },
      read: (content) => ({ selected: value(options[Number(content?.selected) - 1]) }),
    };
  }
  if (method !== 'elicitation/input' && method !== 'elicitation/preference') return undefined;
  const schema = params?.schema;
  if (schema?.type === 'object') {
    const entries = Object.entries(schema.properties ?? {}).slice(0, MAX_FIELDS);
    const fields = entries.map(([name, each]) => [name, fieldOf(each)]);
    if (!fields.length || fields.some(([, field]) => !field)) return undefined;
    const names = fields.map(([name]) => name);
    const required = (Array.isArray(schema.required) ? schema.required : []).filter(
      (/** @type {string} */ name) => names.includes(name),
    );
    const requestedSchema = { type: 'object', properties: Object.fromEntries(fields), required };
    return {
      params: { mode: 'form', message, requestedSchema },
      read: (content) => ({ value: content }),
    };
  }
  const field = fieldOf(schema ?? { type: 'string', default: params?.default });
  if (!field) return undefined;
  return {
    params: { mode: 'form', message, requestedSchema: oneField('value', field) },
    read: (content) => ({ value: content?.value }),
  };
}

/** The protocol's response for what a person did with a form. @param {Form} form @param {any} result of `elicitation/create` */
export function responseOf(form, result) {
  if (result?.action !== 'accept') return DECLINED;
  return { success: true, data: form.read(result.content ?? {}) };
}

export { DECLINED };
