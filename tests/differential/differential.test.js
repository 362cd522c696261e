// One C source, three cores: native, WebAssembly, JavaScript. The same inputs bring the same
// actions, texts and counts out of each. SCRIPTS says how many scripts (npm run differential plays
// 100,000), SEED where they begin.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';
import asJavaScript from '../../dist/abp-js.js';
import deflated from '../../dist/abp-wasm.js';
import { HEAD, Player, script } from './scripts.js';

const count = Number(process.env.SCRIPTS ?? 10_000);
const first = Number(process.env.SEED ?? 1);
const env = { emscripten_notify_memory_growth() {} };
const bytes = inflateRawSync(Buffer.from(deflated, 'base64'));
const wasm = new Player(new WebAssembly.Instance(new WebAssembly.Module(bytes), { env }).exports);
const js = new Player(asJavaScript(env));

/** Plays a script's bytes. */
function play(player, records) {
  for (const record of records) {
    const head = [...new Uint32Array(record.buffer, 0, HEAD)];
    player.play(head[0], head.slice(1, HEAD - 1), record.subarray(HEAD * 4));
  }
  return player.hash >>> 0;
}

test(`${count} random scripts, from seed ${first}: the native, WASM and JavaScript cores agree`, async () => {
  const native = spawn(
    fileURLToPath(new URL('../../build/test/tests/core/trace', import.meta.url)),
  );
  const output = [];
  native.stdout.on('data', (chunk) => output.push(chunk));
  native.stderr.pipe(process.stderr);
  const ended = new Promise((resolve) => native.on('close', resolve));
  const hashes = new Uint32Array(count);
  let settled = 0;
  for (let i = 0; i < count; i++) {
    const records = [];
    script(first + i, wasm, (record) => records.push(record));
    hashes[i] = wasm.hash >>> 0;
    settled += wasm.calls.length;
    assert.equal(play(js, records), hashes[i], `JavaScript differs: SEED=${first + i} SCRIPTS=1`);
    if (!native.stdin.write(Buffer.concat(records))) {
      await new Promise((resolve) => native.stdin.once('drain', resolve));
    }
  }
  native.stdin.end();
  assert.equal(await ended, 0);
  const theirs = Buffer.concat(output);
  assert.equal(theirs.length, count * 4);
  for (let i = 0; i < count; i++) {
    assert.equal(
      theirs.readUInt32LE(i * 4),
      hashes[i],
      `native differs: SEED=${first + i} SCRIPTS=1`,
    );
  }
  assert.ok(settled > count * 2, `the scripts make calls: ${settled}`);
});
