import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runScenario } from '../../../demo/a2a-scenario.js';
import { serve } from './support/a2a.js';

const script = fileURLToPath(new URL('../../../demo/a2a.js', import.meta.url));

/** @returns {Promise<{ code: number, stdout: string }>} */
const run = (...args) =>
  new Promise((resolve) => {
    execFile(process.execPath, [script, ...args], (error, stdout) =>
      resolve({ code: error ? Number(error.code) : 0, stdout }),
    );
  });

test('the scenario: completed, canceled, completed, read back with tasks/get', async () => {
  const { code, stdout } = await run('--speed', '20');
  const states = [...stdout.matchAll(/^ {2}([ABC]) (\w+) +(\d+) steps$/gm)];
  assert.deepEqual(
    states.map(([, name, state]) => `${name} ${state}`),
    ['A completed', 'B canceled', 'C completed'],
    stdout,
  );
  const steps = states.map(([, , , count]) => Number(count));
  assert.equal(steps[0], 10);
  assert.ok(steps[1] < 10, stdout);
  assert.equal(steps[2], 10);
  assert.match(stdout, /Steps that ran after their task was cancelled: 0$/m);
  // Without a terminal there is a line for the start and for each step.
  assert.equal(stdout.match(/^A █*·* +\d+\/10 working/gm).length, 11, stdout);
  assert.equal(code, 0);
});

test('the scenario fails when a state is not the expected one', async () => {
  let written = '';
  const output = { write: (text) => (written += text) };
  const { ok, states } = await runScenario({ speed: 100, cancelAfter: 1000, output });
  assert.equal(states.B, 'completed');
  assert.equal(ok, false);
});

test('the scenario draws over its bars on a terminal', async () => {
  let written = '';
  const output = { isTTY: true, write: (text) => (written += text) };
  const { ok, steps } = await runScenario({ speed: 100, output });
  assert.equal(ok, true);
  assert.ok(steps.B < 10);
  assert.ok(written.includes('\x1b[3A'));
});

test('the scenario refuses a speed that is none', async () => {
  assert.equal((await run('--speed', 'x')).code, 2);
});

const manual = readFileSync(new URL('../docs/a2a.md', import.meta.url), 'utf8');
/** What the reader of a sample has. */
const GIVEN = `
  const agentCard = { name: 'x' };
  const agentExecutor = { async execute() {}, async cancelTask() {} };
`;
const samples = [...manual.matchAll(/```js\n(.*?)```/gs)].map(([, text]) => text);

for (const [i, sample] of samples.entries())
  test(`the manual's sample ${i + 1} runs`, async (t) => {
    const agent = await serve((ctx) => void ctx.emitArtifact({ parts: [{ text: 'step 1/10' }] }));
    t.after(() => agent.close());
    const source = sample
      .replace(/'@abp-bridge\/a2a(?:\/(.+))?'/, (_, name = 'index') =>
        JSON.stringify(new URL(`../src/${name}.js`, import.meta.url)),
      )
      .replace('https://agent.example/', agent.url)
      .replace('.listen(8080)', '.listen(0).unref()');
    assert.ok(source.includes('packages/a2a/src/'));
    const script = ['--input-type=module', '--eval', GIVEN + source];
    const { error, stderr } = await new Promise((resolve) => {
      execFile(process.execPath, script, (error, _, stderr) => resolve({ error, stderr }));
    });
    assert.equal(error, null, stderr);
  });
