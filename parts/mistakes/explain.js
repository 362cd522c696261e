/** Says more about a refusal than its code. Loaded with the first one. */
import { similarName } from '../../js/common/similar-name.js';
import { textOf } from '../../js/common/values.js';

/** @typedef {{ met?: boolean, description: string, resolution?: string }} Requirement */

/**
 * Completes the error that refuses a call.
 * @param {unknown} name of the capability, as the caller wrote it
 * @param {any} capability as agents are told of it, or null
 * @param {ReadonlyMap<string, unknown>} capabilities what the app has, by name
 * @param {import('../../js/common/errors.js').ErrorObject} error
 */
export function explain(name, capability, capabilities, error) {
  const shown = (textOf(name) ?? typeof name).slice(0, 200);
  /** @type {Requirement[]} */
  const requirements = capability?.requirements ?? [];
  const unmet = requirements.filter(({ met }) => !met);
  switch (error.code) {
    case 'CAPABILITY_UNAVAILABLE':
      if (capability?.alternatives) error.alternatives = capability.alternatives;
      error.message += `: ${[shown, ...unmet.map(wordsOf)].join(', ')}`;
      return;
    case 'UNKNOWN_CAPABILITY': {
      const near = similarName(shown, [...capabilities.keys()]);
      error.message += `: ${shown}${near === undefined ? '' : `. Did you mean ${near}?`}`;
      if (near !== undefined) error.alternatives = [near];
      return;
    }
    case 'REQUIREMENT_NOT_MET':
      error.message += `: ${unmet.map(wordsOf).join(', ')}`;
      error.details = { requirements: unmet };
  }
}

/**
 * What is missing, and what helps.
 * @param {Requirement} requirement
 */
const wordsOf = ({ description, resolution }) =>
  resolution ? `${description} (${resolution})` : description;
