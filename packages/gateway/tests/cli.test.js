// The program as a person meets it: help, exit codes, and sentences instead of stack traces.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runGateway } from './support/program.js';

test('each command has help, and the program lists them', async () => {
  const { stdout, code } = await runGateway(['--help']);
  assert.equal(code, 0);
  const names = [...stdout.matchAll(/^ {2}([a-z0-9]+) {2,}/gm)].map(([, name]) => name);
  assert.ok(names.includes('doctor'));
  for (const name of names) {
    const help = await runGateway([name, '--help']);
    assert.equal(help.code, 0);
    assert.match(help.stdout, new RegExp(`^abp-bridge-gateway ${name} `));
  }
});

for (const [what, args] of Object.entries({
  'a command that there is not': ['frobnicate'],
  'a command that objects have': ['constructor'],
  'an option that there is not': ['doctor', '--frobnicate'],
  'too many arguments': ['doctor', 'now'],
})) {
  test(`${what} is a sentence and exit code 2`, async () => {
    const { stderr, code } = await runGateway(args);
    assert.equal(code, 2);
    assert.match(stderr, /^(abp-bridge-gateway: |Usage: )[^\n]+\n$/);
  });
}

test('doctor finds the browser, and tells its version', async () => {
  const { stdout, code } = await runGateway(['doctor']);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /ok +a browser: \/.+\nok +its version: \S+/);
});

test('doctor says what installs a browser where there is none, with exit code 3', async () => {
  const { stdout, code } = await runGateway(['doctor'], { env: { PATH: '', CHROME_PATH: '' } });
  assert.equal(code, 3);
  assert.match(stdout, /missing +a browser\n +mend: \S+/);
});
