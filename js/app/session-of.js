/** Reads an agent's description of itself when its session begins. */
import { firstOf, getOwn, textOf } from '../common/values.js';

/** Elicitation methods that an agent may list; further ones are ignored. */
const MAX_REQUESTS = 256;

/** @param {unknown} list */
const textsOf = (list) =>
  Array.isArray(list)
    ? firstOf(list, MAX_REQUESTS).filter((name) => typeof name === 'string')
    : undefined;

/**
 * The agent's description of itself.
 * @param {unknown} payload of its `initialize`
 */
export function sessionOf(payload) {
  const agent = getOwn(payload, 'agent');
  const agentCapabilities = getOwn(payload, 'agentCapabilities');
  return {
    agent: { name: textOf(getOwn(agent, 'name')), version: textOf(getOwn(agent, 'version')) },
    requestedCapabilities: textsOf(getOwn(payload, 'requestedCapabilities')),
    allowedRequests: textsOf(getOwn(agentCapabilities, 'allowedRequests')),
    owner: textOf(getOwn(agentCapabilities, 'owner')),
  };
}
