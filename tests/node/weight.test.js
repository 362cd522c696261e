// What a reader has to go through: the shim is thin. What a page downloads is in tests/size.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { functionsOf } from '../support/steps.js';

const MODULE = new URL('../support/one-call.js', import.meta.url);
const MOST_LINES = 8170;
const MOST_FUNCTIONS = 96;
const MOST_FILES = 20;

test('the shim has few lines, with types and comments', () => {
  const shim = new URL('../../js/', import.meta.url);
  const files = readdirSync(shim, { recursive: true }).filter((name) => /\.[jt]s$/.test(`${name}`));
  const lines = files.map(
    (name) => readFileSync(new URL(`${name}`, shim), 'utf8').split('\n').length - 1,
  );
  const sum = lines.reduce((a, b) => a + b);
  assert.ok(files.length > 10 && sum <= MOST_LINES, `${sum} lines of ${MOST_LINES}`);
});

test('a call passes few functions and files, from client.call to the handler and back', async () => {
  const functions = await functionsOf(MODULE, 'oneCall');
  const files = new Set(functions.map((name) => name.split(':')[0]));
  assert.ok(files.has('js/agent/client.js') && files.has('js/session/call.js'), 'they are counted');
  const listed = `${functions.length} functions in ${files.size} files:\n${functions.join('\n')}`;
  assert.ok(functions.length <= MOST_FUNCTIONS && files.size <= MOST_FILES, listed);
});
