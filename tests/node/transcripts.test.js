// The rules of the protocol over every transport between two sides of this library, and between
// each side and a plain peer that shares no code with it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CHANNELS, MODES } from '../contracts/channels.js';
import { CANCEL_AND_CALL, sections } from '../support/sections.js';
import { play } from '../support/transcript.js';

for (const channel of CHANNELS) {
  for (const mode of MODES.filter(({ name }) => channel.modes.includes(name))) {
    describe(`${channel.name}: ${mode.name}`, () => {
      const both = mode.agent === 'ours' && mode.app === 'ours';
      const isPlayed = ({ ours, title }) =>
        channel.isBrief ? title === CANCEL_AND_CALL : both || !ours;
      for (const section of sections().filter(isPlayed)) {
        test(section.title, async () => {
          const pair = await channel.pair(mode, section);
          try {
            const { seen, expected } = await play(section, pair);
            assert.deepEqual(seen, expected);
            // Lest one combination test another.
            const agreed = both && pair.features.frames;
            assert.equal(agreed, both && channel.frames && mode.upgrade === 'frames');
          } finally {
            pair.close();
          }
        });
      }
    });
  }
}
