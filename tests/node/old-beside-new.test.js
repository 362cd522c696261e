// An app and the page that calls it are updated at different times: today's side beside one of an
// older version, which is a recording. tests/transcripts/README.md says how one is made.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { connect, expose } from '../../packages/main/src/index.js';
import { attend, play, record, serve } from '../support/old-wire.js';

const folder = new URL('../transcripts/old/', import.meta.url);

/** What both agreed on, of what is not published. */
const AGREED = {
  frames: { port: true, frames: true, liveness: true, streams: true },
  port: { port: true, frames: false, liveness: true, streams: true },
  none: { port: false, frames: false, liveness: false, streams: false },
};

for (const file of readdirSync(folder).filter((name) => name.endsWith('.jsonl'))) {
  const [, version, upgrade] = /^(.+)-(\w+)\.jsonl$/.exec(file);
  const recording = readFileSync(new URL(file, folder), 'utf8');
  describe(`${version}, with upgrade: '${upgrade}'`, () => {
    test('as agent of an app of today', () =>
      play(recording, 'app', (transport) => void serve(expose, transport, upgrade)));

    test('as app of an agent of today', async () => {
      let features;
      await play(recording, 'agent', async (transport) => {
        features = await attend(connect, transport, upgrade);
      });
      for (const [name, is] of Object.entries(AGREED[upgrade])) assert.equal(features[name], is);
    });
  });
}

test('a recording of today can be played to today', async () => {
  const recording = await record({ connect, expose }, 'frames');
  await play(recording, 'app', (transport) => void serve(expose, transport, 'frames'));
});
