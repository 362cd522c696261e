/** story.tell: a text, word by word, in the pace of a language model. */
import { sampleMarkdown } from '../sample.js';

export const inputSchema = {
  type: 'object',
  properties: { words: { type: 'integer', minimum: 1, maximum: 10_000 } },
};

/**
 * @param {{ words?: number }} params
 * @param {import('../../js/app/registry.js').CallContext} context
 */
export async function* handler({ words = 200 }, { signal, progress }) {
  const text = sampleMarkdown(Math.ceil(words / 250)).replace(/[#*`-]/g, '');
  const list = text.match(/\S+\s*/g)?.slice(0, words) ?? [];
  for (const [i, word] of list.entries()) {
    await new Promise((resolve) => setTimeout(resolve, 40));
    signal.throwIfAborted();
    progress({ progress: i + 1, total: list.length });
    yield word;
  }
}
