import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('../../../../demo/fleet.js', import.meta.url));

test('the demo kills a process, and nothing is told wrong', { timeout: 600_000 }, async () => {
  const { code, stdout, stderr } = await new Promise((resolve) => {
    execFile(process.execPath, [script], (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, stdout, stderr }),
    );
  });
  assert.match(stdout, /^Process \d+ is killed\.$/m, stderr);
  assert.match(stdout, /attempt 2/);
  assert.match(stdout, /^Nothing was told wrong\.$/m, stdout + stderr);
  assert.equal(code, 0);
});
