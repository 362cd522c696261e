/**
 * Loads the development part, which has the words for mistakes: in a program that has none nothing
 * of it is loaded.
 */
import { loadPart } from './errors.js';

/** @typedef {typeof import('../../parts/mistakes/index.js')} Mistakes */

/** @returns {Promise<Mistakes>} rejects with an AbpError if it does not load */
export const development = () => loadPart(import('../../parts/mistakes/index.js'));

/**
 * Has something said of a mistake, if what says it can be loaded.
 * @param {(dev: Mistakes) => void} say
 */
export const tell = (say) => void development().then(say, () => {});

/**
 * Warns of a mistake that would go unnoticed.
 * @param {string} message what is wrong and what to do
 * @param {...unknown} details
 */
export const warn = (message, ...details) => tell((dev) => dev.warn(message, ...details));
