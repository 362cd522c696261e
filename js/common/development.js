/**
 * Loads the development part, which has the words for mistakes: in a program that has none nothing
 * of it is loaded.
 */
import { loadPart } from './errors.js';

/**
 * @returns {Promise<typeof import('./dev/index.js')>} rejects with an AbpError if it does not load
 */
export const development = () => loadPart(import('./dev/index.js'));

/**
 * Has something said of a mistake, if what says it can be loaded.
 * @param {(dev: typeof import('./dev/index.js')) => void} say
 */
export const tell = (say) => void development().then(say, () => {});

/**
 * Warns of a mistake that would go unnoticed.
 * @param {string} message what is wrong and what to do
 * @param {...unknown} details
 */
export const warn = (message, ...details) => tell((dev) => dev.warn(message, ...details));
