/** Adds details to a rejection's error. Loaded with the first rejection. */
import { similarName } from '../../js/common/similar-name.js';
import { textOf } from '../../js/common/values.js';

/** @typedef {{ met?: boolean, description: string, resolution?: string }} Requirement */

/**
 * Adds details to the error of a rejected call.
 * @param {unknown} name of the capability, as the caller wrote it
 * @param {any} capability its description for agents, or null
 * @param {ReadonlyMap<string, unknown>} capabilities the app's capabilities, by name
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
 * The missing requirement, and what helps.
 * @param {Requirement} requirement
 */
const wordsOf = ({ description, resolution }) =>
  resolution ? `${description} (${resolution})` : description;
