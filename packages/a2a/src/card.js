/** The agent card: written once, in the form of A2A 1.0, and printed in the form of each version. */
import { REPEATS } from './ids.js';

/** The versions that this agent speaks, the preferred one first. */
const SPOKEN = [
  { protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
  { protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
  { protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
];

/** @typedef {'1.0' | '0.3' | '0.2' | 'gem'} CardVersion */

/**
 * @typedef {object} CardInterface
 * @property {string} [url] the agent's, if there is none
 * @property {string} [protocolBinding]
 * @property {string} [protocolVersion]
 * @property {string} [tenant]
 */

/** @typedef {{ schemes?: Record<string, { list?: string[] } | undefined> }} SecurityRequirement */

/**
 * @typedef {object} CardSkill
 * @property {string} [id] its name, if there is none
 * @property {string} name
 * @property {string} [description]
 * @property {string[]} [tags]
 * @property {string[]} [examples]
 * @property {string[]} [inputModes]
 * @property {string[]} [outputModes]
 * @property {SecurityRequirement[]} [securityRequirements]
 */

/**
 * A card as it is written: in the form of 1.0. Absent members have defaults.
 * @typedef {object} AgentCard
 * @property {string} name
 * @property {string} [description]
 * @property {string} [version] the agent's own
 * @property {string} [url]
 * @property {CardInterface[]} [supportedInterfaces]
 * @property {{ streaming?: boolean, extensions?: { uri: string, required?: boolean }[] }} [capabilities]
 * @property {CardSkill[]} [skills]
 * @property {string[]} [defaultInputModes]
 * @property {string[]} [defaultOutputModes]
 * @property {Record<string, SecurityScheme>} [securitySchemes]
 * @property {SecurityRequirement[]} [securityRequirements]
 * @property {object} [provider]
 * @property {string} [documentationUrl]
 * @property {string} [iconUrl]
 * @property {object[]} [signatures]
 */

/**
 * The version of the card for a request that names no version: that of the agent's preferred interface, or 1.0.
 * @param {AgentCard} card
 * @returns {'1.0' | '0.3'}
 */
export const preferredVersion = (card) => (isLegacy(card.supportedInterfaces?.[0]) ? '0.3' : '1.0');

const OWN_EXTENSION = {
  uri: REPEATS,
  description: 'A message that comes again from its sender is taken once',
  required: false,
};

/**
 * The extensions of an agent: those of its card, and the one that every agent here has.
 * @param {AgentCard} card
 * @returns {{ uri: string, required?: boolean }[]}
 */
export const extensionsOf = ({ capabilities }) => [
  ...(capabilities?.extensions ?? []).filter(({ uri }) => uri !== REPEATS),
  OWN_EXTENSION,
];

/** @param {CardInterface | undefined} one of a card's interfaces */
const isLegacy = (one) => /^0\./.test(one?.protocolVersion ?? '');

/**
 * Prints a card.
 * @param {AgentCard} card
 * @param {CardVersion} version the form to print
 * @param {string} url the agent's URL, for interfaces that name none
 * @param {boolean} [pushNotifications] whether the agent sends them
 * @returns {object}
 */
export function printCard(card, version, url, pushNotifications = false) {
  // A change would invalidate the signature.
  if (version === '1.0' && card.signatures?.length) return card;
  /** @type {CardInterface[]} */
  const interfaces = card.supportedInterfaces ?? SPOKEN;
  const supportedInterfaces = interfaces.map((one) => ({
    protocolBinding: 'JSONRPC',
    tenant: '',
    ...one,
    url: one.url ?? card.url ?? url,
  }));
  const { name, description = '', version: agentVersion = '1.0' } = card;
  const who = { name, description, version: agentVersion };
  const { defaultInputModes = ['text/plain'], defaultOutputModes = ['text/plain'] } = card;
  const { provider, documentationUrl, iconUrl, signatures = [] } = card;
  const streaming = card.capabilities?.streaming !== false;
  const extensions = extensionsOf(card);
  const { securitySchemes = {}, securityRequirements = [] } = card;
  const security = securityRequirements.map(legacyRequirement);
  const skills = (card.skills ?? []).map(skillOf);
  const optional = filled({ provider, iconUrl });
  if (version === '1.0')
    return {
      ...who,
      supportedInterfaces,
      capabilities: { streaming, pushNotifications, extensions, extendedAgentCard: false },
      ...{ securitySchemes, securityRequirements, defaultInputModes, defaultOutputModes, skills },
      ...{ documentationUrl: documentationUrl ?? '', signatures, ...optional },
    };
  const jsonRpc = supportedInterfaces.find((one) => one.protocolBinding === 'JSONRPC');
  if (version === 'gem')
    return {
      ...who,
      capabilities: { streaming, pushNotifications, extendedAgentCard: false },
      skills: skills.map(({ name, description }) => ({ name, description })),
      // The gem's clients speak JSON-RPC. The gem numbers its versions independently of A2A.
      interfaces: [{ type: 'json-rpc', url: jsonRpc?.url ?? url, version: '1.0' }],
      securitySchemes: Object.values(securitySchemes).map(legacyScheme),
      ...{ security, extensions },
    };
  const legacy = supportedInterfaces.filter(isLegacy);
  const preferred = legacy[0] ?? jsonRpc ?? { url, protocolBinding: undefined };
  const additionalInterfaces = legacy
    .filter((one) => one !== preferred)
    .map((one) => ({ url: one.url, transport: one.protocolBinding }));
  const schemes = Object.entries(securitySchemes).map(([key, one]) => [key, legacyScheme(one)]);
  return {
    ...who,
    url: preferred.url,
    // 0.2 has a single protocol and transport. A client of 1.0 can read this form, too.
    ...(version === '0.3' && {
      preferredTransport: preferred.protocolBinding ?? 'JSONRPC',
      protocolVersion: '0.3',
      supportedInterfaces,
      ...filled({ additionalInterfaces }),
    }),
    capabilities: { streaming, pushNotifications, extensions },
    ...filled({ securitySchemes: Object.fromEntries(schemes), security }),
    ...{ defaultInputModes, defaultOutputModes, skills: skills.map(legacySkill) },
    ...filled({ documentationUrl, signatures }),
    ...optional,
  };
}

/** Leaves out members that are absent or empty. @param {Record<string, any>} object */
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

/** @typedef {Partial<Record<(typeof SCHEMES)[number][0], { location?: string }>>} SecurityScheme */

/** A security scheme of 1.0 in the form of 0.3, which is OpenAPI's. @param {SecurityScheme} scheme */
function legacyScheme(scheme) {
  const [member, type] = SCHEMES.find(([member]) => scheme[member]) ?? [];
  const stated = member && scheme[member];
  if (!stated) return scheme;
  const { location, ...rest } = stated;
  return { type, ...rest, ...(location && { in: location }) };
}

/** @param {SecurityRequirement} requirement */
const legacyRequirement = ({ schemes = {} }) =>
  Object.fromEntries(Object.entries(schemes).map(([key, scopes]) => [key, scopes?.list ?? []]));

/** @param {CardSkill} skill */
const skillOf = (skill) => ({
  id: skill.id ?? skill.name,
  name: skill.name,
  description: skill.description ?? '',
  tags: skill.tags ?? [],
  examples: skill.examples ?? [],
  inputModes: skill.inputModes ?? [],
  outputModes: skill.outputModes ?? [],
  securityRequirements: skill.securityRequirements ?? [],
});

/** Leaves out empty lists, which 0.3 reads as "none" and not as "the agent's". @param {ReturnType<typeof skillOf>} skill */
function legacySkill({ examples, inputModes, outputModes, securityRequirements, ...skill }) {
  const security = securityRequirements.map(legacyRequirement);
  return { ...skill, ...filled({ examples, inputModes, outputModes, security }) };
}
