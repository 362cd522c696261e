// A page as Puppeteer and Playwright show it, without a browser: scripts are text, and what goes in
// and out is JSON.

const copied = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

/**
 * @param {Record<string, any>} members what the page's scripts find
 * @returns {import('../../src/page.js').PageLike}
 */
export function drivenPage(members) {
  const page = { addEventListener() {}, removeEventListener() {}, ...members };
  return {
    async evaluateHandle(script) {
      const object = new Function('globalThis', `return ${script}`)(page);
      const evaluate = async (question, argument) =>
        copied(await question(object, copied(argument)));
      return { evaluate, dispose: async () => {} };
    },
  };
}
