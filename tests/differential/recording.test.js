// What a recorder writes down in JavaScript, from the WebAssembly core, is played again by
// abp-replay: by the native one, and by the one in the package.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { recordSession } from '../support/recorded.js';

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const NATIVE = at('build/test/abp-replay');
const PACKED = at('packages/inspector/dist/bin/abp-replay.cjs');
const folder = mkdtempSync(join(tmpdir(), 'abp-recording-'));
after(() => rmSync(folder, { recursive: true }));

/**
 * What each program says of a recording must be the same.
 * @param {string} text
 */
function replay(text) {
  const file = join(folder, 'session.jsonl');
  writeFileSync(file, text);
  const [native, packed] = [NATIVE, PACKED].map((program) => {
    const { status, stdout } = spawnSync(program, [file], { encoding: 'utf8' });
    return { status, stdout };
  });
  assert.deepEqual(packed, native);
  return packed;
}

for (const upgrade of ['frames', 'none']) {
  for (const payloads of [false, true]) {
    test(`a session over ${upgrade} replays, recorded ${payloads ? 'with' : 'without'} payloads`, async () => {
      const { text } = await recordSession({ upgrade, recording: { payloads } });
      const { status, stdout } = replay(text);
      assert.equal(status, 0, stdout);
      assert.match(stdout, /the same: \d\d+ inputs, \d\d+ actions/);
    });
  }
}

test('a recording that was cut off replays as far as it goes', async () => {
  const { text } = await recordSession({ recording: { maxLength: 15_000 } });
  const { status, stdout } = replay(text);
  assert.equal(status, 0, stdout);
});

test('where a recording differs, its line is named', async () => {
  const { text } = await recordSession();
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.includes('"then":"settle"'));
  lines[at] = lines[at].replace('"arg":1', '"arg":2');
  const { status, stdout } = replay(lines.join('\n'));
  assert.equal(status, 1, stdout);
  assert.match(
    stdout,
    new RegExp(`session\\.jsonl:${at + 1}: this differs.*\\n  recorded: settle, arg 2`),
  );
});

test('the program of the package says where altered recordings differ, as the native one does', () => {
  const recording = at('tests/core/recordings/session.jsonl');
  const args = [at('tests/core/test_replay.sh'), PACKED, recording, join(folder, 'altered.jsonl')];
  const { status, stdout } = spawnSync('sh', args, { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
