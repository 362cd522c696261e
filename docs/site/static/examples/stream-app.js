import { expose } from '../abp/abp-bridge.js'; // workers have no import map

const STORY =
  'The agent asked for a story, word by word. Nobody knew how long it would be, so the agent kept its finger on the button. ' +
  'Each word came when it was ready, and no sooner than there was room for it. At the end there was a result, as of every call.';

expose({
  app: { id: 'example.stories', name: 'Stories', version: '1.0' },
  capabilities: {
    async *'story.tell'() {
      const words = STORY.split(' ');
      for (const word of words) {
        await new Promise((resolve) => setTimeout(resolve, 60));
        yield `${word} `;
      }
      return { words: words.length };
    },
  },
});
