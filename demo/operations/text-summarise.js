/** text.summarise: the most typical sentences of a text, by how often their words occur. */

export const inputSchema = {
  type: 'object',
  properties: {
    text: { type: 'string', minLength: 1 },
    sentences: { type: 'integer', minimum: 1, maximum: 50 },
  },
  required: ['text'],
};

const words = (/** @type {string} */ text) => text.toLowerCase().match(/\p{L}{4,}/gu) ?? [];

/**
 * @param {{ text: string, sentences?: number }} params
 * @param {import('abp-bridge').CallContext} context
 */
export async function handler({ text, sentences = 3 }, { progress, breathe }) {
  const list = text.match(/[^.!?\n]+[.!?]/g)?.map((s) => s.trim()) ?? [text];
  const sets = list.map((sentence) => new Set(words(sentence)));
  const scores = [];
  // How much each sentence shares with every other: the centre of the text has the highest score.
  for (const [i, own] of sets.entries()) {
    let score = 0;
    for (const other of sets) {
      let common = 0;
      for (const word of own) if (other.has(word)) common++;
      score += common / (1 + Math.log(1 + own.size) + Math.log(1 + other.size));
    }
    scores.push({ i, score });
    await breathe();
    if (i % 50 === 0) progress({ progress: i, total: list.length, stage: 'comparing' });
  }
  progress({ progress: list.length, total: list.length, stage: 'done' });
  // The best of those that do not repeat the chosen ones.
  scores.sort((a, b) => b.score - a.score);
  /** @type {typeof scores} */
  const chosen = [];
  const repeats = (/** @type {number} */ i) =>
    chosen.some(
      (other) => [...sets[i]].filter((word) => sets[other.i].has(word)).length > sets[i].size / 2,
    );
  for (const one of scores) {
    if (chosen.length < sentences && !repeats(one.i)) chosen.push(one);
  }
  return {
    summary: chosen
      .sort((a, b) => a.i - b.i)
      .map(({ i }) => list[i])
      .join(' '),
    sentences: list.length,
  };
}
