/**
 * Checks an agent's card when it is given: a misspelt member would not be served, and a wrong type
 * would break the card's readers.
 */
import { isObject } from 'abp-bridge/driver';
import { checkFields, each, invalid } from './requests.js';

/** @typedef {ReturnType<typeof each>} Fields */

/**
 * The members that a card and its parts may have in the form of 1.0, by the member that contains
 * them.
 * @type {Record<string, Fields>}
 */
const MEMBERS = {
  card: {
    ...each('name description version url documentationUrl iconUrl', 'text'),
    ...each('provider capabilities securitySchemes', 'record'),
    ...each('supportedInterfaces skills securityRequirements signatures', 'records'),
    ...each('defaultInputModes defaultOutputModes', 'texts'),
  },
  provider: each('organization url', 'text'),
  capabilities: {
    ...each('streaming pushNotifications extendedAgentCard', 'flag'),
    ...each('extensions', 'records'),
  },
  extensions: {
    ...each('uri description', 'text'),
    ...each('required', 'flag'),
    ...each('params', 'record'),
  },
  supportedInterfaces: each('url protocolBinding protocolVersion tenant', 'text'),
  skills: {
    ...each('id name description', 'text'),
    ...each('tags examples inputModes outputModes', 'texts'),
    ...each('securityRequirements', 'records'),
  },
};
/** Required members. @type {Record<string, string>} */
const NEEDED = { card: 'name', extensions: 'uri', skills: 'name' };

/**
 * @param {any} object
 * @param {string} at where it is in the card
 * @param {string} kind the key in `MEMBERS`
 */
function checkMembers(object, at, kind) {
  const fields = MEMBERS[kind];
  checkFields(object, `${at}.`, fields);
  const needed = NEEDED[kind];
  if (needed && !object[needed]) throw invalid(`${at}.${needed}`, 'is required: a string');
  for (const [name, value] of Object.entries(object)) {
    if (!Object.hasOwn(fields, name))
      throw invalid(`${at}.${name}`, `is not known; there are: ${Object.keys(fields).join(', ')}`);
    if (!Object.hasOwn(MEMBERS, name) || !isObject(value)) continue;
    if (!Array.isArray(value)) checkMembers(value, `${at}.${name}`, name);
    else value.forEach((one, i) => checkMembers(one, `${at}.${name}[${i}]`, name));
  }
}

/**
 * Throws unless a card has the form of 1.0 and promises only what the agent does.
 * @param {any} card
 * @param {boolean} pushes whether the agent sends push notifications
 */
export function checkCard(card, pushes) {
  checkMembers(card, 'card', 'card');
  for (const [name, scheme] of Object.entries(card.securitySchemes ?? {}))
    checkFields({ [name]: scheme }, 'card.securitySchemes.', { [name]: 'record' });
  const { pushNotifications, extendedAgentCard } = card.capabilities ?? {};
  if (pushNotifications && !pushes)
    throw invalid(
      'card.capabilities.pushNotifications',
      'needs the option push (docs/a2a-fleet.md#push-notifications of @abp-bridge/a2a-store)',
    );
  if (extendedAgentCard)
    throw invalid('card.capabilities.extendedAgentCard', 'is not supported: leave it out');
}
