// The rules of the protocol over every channel: this library on both sides, and each side against a
// plain peer that shares no code with it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CHANNELS, MODES } from '../contracts/channels.js';
import { sections } from '../support/sections.js';
import { play } from '../support/transcript.js';

for (const channel of CHANNELS) {
  for (const mode of MODES.filter(({ name }) => channel.modes?.includes(name) ?? true)) {
    describe(`${channel.name}: ${mode.name}`, () => {
      const both = mode.agent === 'ours' && mode.app === 'ours';
      for (const section of sections().filter(({ ours }) => both || !ours)) {
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
