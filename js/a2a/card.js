/** The agent card: one, given in the form of 1.0, printed for each version. */

const PROTOCOLS = ['1.0', '0.3'];

/**
 * @param {any} card
 * @param {'1.0' | '0.3' | '0.2' | 'gem'} version
 * @param {string} url where the agent is asked, unless the card says so itself
 * @returns {any}
 */
export function printCard(card, version, url) {
  const at = card.url ?? card.supportedInterfaces?.[0]?.url ?? url;
  const { name, description = '', version: agentVersion = '1.0' } = card;
  const who = { name, description, version: agentVersion };
  const { defaultInputModes = ['text/plain'], defaultOutputModes = ['text/plain'] } = card;
  const { provider, documentationUrl, iconUrl, signatures = [] } = card;
  const streaming = card.capabilities?.streaming !== false;
  const extensions = card.capabilities?.extensions ?? [];
  const skills = (card.skills ?? []).map(skillOf);
  const supportedInterfaces =
    card.supportedInterfaces ??
    PROTOCOLS.map((protocolVersion) => ({
      url: at,
      protocolBinding: 'JSONRPC',
      tenant: '',
      protocolVersion,
    }));
  const { securitySchemes = {}, securityRequirements = [] } = card;
  const optional = {
    ...(provider && { provider }),
    ...(iconUrl && { iconUrl }),
  };
  switch (version) {
    case '1.0':
      return {
        ...who,
        supportedInterfaces,
        capabilities: { streaming, pushNotifications: false, extensions, extendedAgentCard: false },
        securitySchemes,
        securityRequirements,
        defaultInputModes,
        defaultOutputModes,
        skills,
        documentationUrl: documentationUrl ?? '',
        signatures,
        ...optional,
      };
    case 'gem':
      return {
        ...who,
        capabilities: { streaming, pushNotifications: false, extendedAgentCard: false },
        skills: skills.map((/** @type {any} */ { name, description }) => ({ name, description })),
        interfaces: [{ type: 'json-rpc', url: at, version: '1.0' }],
        securitySchemes: [],
        security: [],
        extensions: [],
      };
    default:
      return {
        ...who,
        url: at,
        // 0.2 knows one protocol and one transport; a client of 1.0 that says nothing finds its own in this, too.
        ...(version === '0.3' && {
          preferredTransport: 'JSONRPC',
          protocolVersion: '0.3',
          supportedInterfaces,
        }),
        capabilities: {
          streaming,
          pushNotifications: false,
          ...(extensions.length && { extensions }),
        },
        defaultInputModes,
        defaultOutputModes,
        skills: skills.map(legacySkill),
        ...(documentationUrl && { documentationUrl }),
        ...optional,
      };
  }
}

/** @param {any} skill */
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

/** Without the lists that are empty: 0.3 takes them for "none", not for "the agent's". @param {any} skill */
const legacySkill = ({ id, name, description, tags, examples, inputModes, outputModes }) => ({
  id,
  name,
  description,
  tags,
  ...(examples.length && { examples }),
  ...(inputModes.length && { inputModes }),
  ...(outputModes.length && { outputModes }),
});
