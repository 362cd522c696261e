/** story.tell: a short story, word by word, in the pace of a language model. */

export const inputSchema = {
  type: 'object',
  properties: { words: { type: 'integer', minimum: 1, maximum: 1000 } },
};

const STORY = `The keeper's daughter was nine when she learned to stop the light. It was not allowed. But the lamp of Skerry
Point turned by clockwork, and the clockwork had a brake, and one still night she put her small hand on it.

The great lens slowed, sighed, and stood. Four miles out, the mate of the Pole Star had counted three flashes and waited for
the fourth. It did not come. He waited as long as a breath takes, and then another, and his captain said what every sailor
says: "Is it finished, or is it broken?"

They could not know. A light that has gone out looks like a light that was never there. So they turned the ship about,
although there was nothing wrong, and lost the tide, and lay until morning in the bay.

When the captain came up the stair in the morning, wet and angry, he did not shout. He asked the girl one thing: "When you
stopped it, why did you not tell us?"

From that day, anyone who put a hand on the brake at Skerry Point first lit the small red lamp below the gallery. Red, and then
dark: that means we have stopped, we meant to, and you may turn about. Dark alone means come and help us. And if the red lamp
is lit and the white one goes on turning all the same, then the message came too late, the ship had passed, and all is well.

She kept the light herself, later, for thirty-one years. There was not one wreck. "It is easy to stop a thing," she used to
say to young keepers, while she showed them the brake. "The work is in saying what became of it."`;

/**
 * @param {{ words?: number }} params
 * @param {import('abp-bridge').CallContext} context
 */
export async function* handler({ words = 1000 }, { signal, progress }) {
  const list = STORY.match(/\S+\s*/g)?.slice(0, words) ?? [];
  for (const [i, word] of list.entries()) {
    await new Promise((resolve) => setTimeout(resolve, 40));
    signal.throwIfAborted();
    progress({ progress: i + 1, total: list.length });
    yield word.replace(/(?<!\n)\n(?!\n)/, ' ');
  }
}
