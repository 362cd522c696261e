/**
 * The agent card: written once, in the form of A2A 1.0, and printed in the form of each version.
 */
import { REPEATS } from './ids.js';

/** @typedef {'1.0' | '0.3' | 'gem'} CardVersion */
/**
 * @typedef {object} CardInterface
 * @property {string} [url]
 * @property {string} [protocolBinding]
 * @property {string} [protocolVersion]
 * @property {string} [tenant]
 */
/** @typedef {{ schemes?: Record<string, { list?: string[] } | undefined> }} SecurityRequirement */

/**
 * A card as written, in the form of 1.0: the members that are read here.
 * @typedef {object} AgentCard
 * @property {string} name
 * @property {string} [url] for interfaces without a `url`
 * @property {CardInterface[]} [supportedInterfaces]
 * @property {{ streaming?: boolean, extensions?: { uri: string, required?: boolean }[] }}
 *   [capabilities]
 * @property {object[]} [skills]
 * @property {object} [provider]
 * @property {string} [iconUrl]
 * @property {object[]} [signatures]
 */

/**
 * Defaults of a card's members: the interfaces are the versions that this agent speaks, the
 * preferred one first.
 */
const CARD = {
  description: '',
  version: '1.0',
  supportedInterfaces: [
    { protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    { protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
  ],
  skills: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  securitySchemes: {},
  securityRequirements: [],
  documentationUrl: '',
  signatures: [],
};
/** Defaults of a skill's members, besides its name and its id. */
const SKILL = {
  description: '',
  tags: [],
  examples: [],
  inputModes: [],
  outputModes: [],
  securityRequirements: [],
};

/**
 * A copy of the defaults, so the caller may change it.
 * @param {any} object
 * @param {object} defaults
 * @returns {any}
 */
const withDefaults = (object, defaults) =>
  Object.fromEntries(
    Object.entries(structuredClone(defaults)).map(([name, otherwise]) => [
      name,
      object[name] ?? otherwise,
    ]),
  );

/** @param {CardInterface | undefined} one interface of a card */
const isLegacy = (one) => /^0\./.test(one?.protocolVersion ?? '');

/** The extensions of every agent of this package. */
export const OWN_EXTENSION = {
  uri: REPEATS,
  description: 'A message that comes again from its sender is taken once',
  required: false,
};

/**
 * Prints a card.
 * @param {AgentCard} card
 * @param {CardVersion | undefined} asked the form to print; the default is that of the agent's
 *   preferred interface, or 1.0
 * @param {string} url the agent's URL, for interfaces that name none
 * @param {boolean} [pushNotifications] whether the agent sends them
 * @returns {object}
 */
export function printCard(card, asked, url, pushNotifications = false) {
  const version = asked ?? (isLegacy(card.supportedInterfaces?.[0]) ? '0.3' : '1.0');
  // A change would invalidate the signature.
  if (version === '1.0' && card.signatures?.length) return card;
  const { name, provider, iconUrl } = card;
  const { supportedInterfaces: given, skills: written, ...rest } = withDefaults(card, CARD);
  const { description, version: agentVersion, securitySchemes, securityRequirements } = rest;
  const who = { name, description, version: agentVersion };
  /** @type {(CardInterface & { url: string })[]} */
  const supportedInterfaces = given.map((/** @type {CardInterface} */ one) => ({
    protocolBinding: 'JSONRPC',
    tenant: '',
    ...one,
    url: one.url ?? card.url ?? url,
  }));
  const streaming = card.capabilities?.streaming !== false;
  const extensions = (card.capabilities?.extensions ?? [])
    .filter(({ uri }) => uri !== REPEATS)
    .concat(OWN_EXTENSION);
  /** @type {any[]} */
  const skills = written.map((/** @type {any} */ { id, name, ...skill }) => ({
    id: id ?? name,
    name,
    ...withDefaults(skill, SKILL),
  }));
  const optional = filled({ provider, iconUrl });
  if (version === '1.0')
    return {
      name,
      supportedInterfaces,
      skills,
      ...rest,
      ...optional,
      capabilities: { streaming, pushNotifications, extensions, extendedAgentCard: false },
    };
  const jsonRpc = supportedInterfaces.find((one) => one.protocolBinding === 'JSONRPC');
  const security = securityRequirements.map(legacyRequirement);
  if (version === 'gem')
    return {
      ...who,
      capabilities: { streaming, pushNotifications, extendedAgentCard: false },
      skills: skills.map(({ name, description }) => ({ name, description })),
      // The gem's clients speak JSON-RPC. The gem numbers its versions independently of A2A.
      interfaces: [{ type: 'json-rpc', url: jsonRpc?.url ?? url, version: '1.0' }],
      securitySchemes: Object.values(securitySchemes).map(legacyScheme),
      security,
      extensions,
    };
  const legacy = supportedInterfaces.filter(isLegacy);
  const preferred = legacy[0] ?? jsonRpc ?? { url, protocolBinding: undefined };
  const additionalInterfaces = legacy
    .filter((one) => one !== preferred)
    .map((one) => ({ url: one.url, transport: one.protocolBinding }));
  const schemes = Object.entries(securitySchemes).map(([key, one]) => [key, legacyScheme(one)]);
  const { defaultInputModes, defaultOutputModes, documentationUrl, signatures } = rest;
  return {
    ...who,
    url: preferred.url,
    preferredTransport: preferred.protocolBinding ?? 'JSONRPC',
    protocolVersion: '0.3',
    // A client of 1.0 can read this form, too.
    supportedInterfaces,
    ...filled({ additionalInterfaces }),
    capabilities: { streaming, pushNotifications, extensions },
    defaultInputModes,
    defaultOutputModes,
    skills: skills.map(legacySkill),
    ...filled({ securitySchemes: Object.fromEntries(schemes), security }),
    ...filled({ documentationUrl, signatures }),
    ...optional,
  };
}

/**
 * Leaves out members that are absent or empty.
 * @param {Record<string, any>} object
 */
const filled = (object) =>
  Object.fromEntries(
    Object.entries(object).filter(([, value]) => value && Object.keys(value).length > 0),
  );

/** The types of security schemes: 1.0 marks them by a member's name, 0.3 by `type`. */
const SCHEMES = /** @type {const} */ ([
  ['apiKeySecurityScheme', 'apiKey'],
  ['httpAuthSecurityScheme', 'http'],
  ['oauth2SecurityScheme', 'oauth2'],
  ['openIdConnectSecurityScheme', 'openIdConnect'],
  ['mtlsSecurityScheme', 'mutualTLS'],
]);

/**
 * A security scheme of 1.0 in the form of 0.3, which is OpenAPI's.
 * @param {any} scheme
 */
function legacyScheme(scheme) {
  const [member, type] = SCHEMES.find(([member]) => scheme[member]) ?? [];
  if (!member) return scheme;
  const { location, ...rest } = scheme[member];
  return { type, ...rest, ...(location && { in: location }) };
}

/** @param {SecurityRequirement} requirement */
const legacyRequirement = ({ schemes = {} }) =>
  Object.fromEntries(Object.entries(schemes).map(([key, scopes]) => [key, scopes?.list ?? []]));

/**
 * Leaves out empty lists, which 0.3 reads as "none" and not as "the agent's".
 * @param {any} skill
 */
function legacySkill({ examples, inputModes, outputModes, securityRequirements, ...skill }) {
  const security = securityRequirements.map(legacyRequirement);
  return { ...skill, ...filled({ examples, inputModes, outputModes, security }) };
}
