/** Loads the part that reports mistakes. A program without mistakes does not load it. */
import { loadPart } from './errors.js';

/** @typedef {typeof import('../../parts/mistakes/index.js')} Mistakes */

/** @returns {Promise<Mistakes>} rejects with an AbpError if it does not load */
export const development = () => loadPart(import('../../parts/mistakes/index.js'));

/**
 * Reports a mistake, if the part that does so can be loaded.
 * @param {(dev: Mistakes) => void} say
 */
export const tell = (say) => void development().then(say, () => {});

/**
 * Warns about a mistake that would otherwise go unnoticed.
 * @param {string} message what is wrong and what to do
 * @param {...unknown} details
 */
export const warn = (message, ...details) => tell((dev) => dev.warn(message, ...details));
