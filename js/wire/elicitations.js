/** What an app may ask its agent. Loaded with the first question. */

/** The elicitation by which an app reads what its agent streams to a handler; `params` has the callId. */
export const INPUT = 'bridge/input';

/**
 * An elicitation's method, by its standard name.
 * @param {unknown} name
 */
export const elicitationMethod = (name) =>
  name === 'elicitation/text' ? 'elicitation/input' : String(name);
