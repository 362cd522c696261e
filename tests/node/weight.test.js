// What a reader has to go through: the shim is thin. What a page downloads is in tests/size.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { functionsOf } from '../support/steps.js';

const MODULE = new URL('../support/one-call.js', import.meta.url);
const MOST_LINES = 8311;
const MOST_PACKAGE_LINES = 30_908;
const MOST_FUNCTIONS = 96;
const MOST_FILES = 20;

const ROOT = new URL('../../', import.meta.url);
/** The lines of all files of a folder that have code. */
const linesOf = (folder) =>
  readdirSync(new URL(folder, ROOT), { recursive: true })
    .filter((name) => /\.[jt]s$/.test(name))
    .map((name) => readFileSync(new URL(`${folder}/${name}`, ROOT), 'utf8').split('\n').length - 1)
    .reduce((a, b) => a + b, 0);

test('the shim has few lines, with types and comments', () => {
  const sum = linesOf('js');
  assert.ok(sum > 1000 && sum <= MOST_LINES, `${sum} lines of ${MOST_LINES}`);
});

test('so have the packages that stand on it', () => {
  const each = readdirSync(new URL('packages', ROOT)).map((name) => [
    name,
    linesOf(`packages/${name}/src`),
  ]);
  const sum = each.reduce((all, [, lines]) => all + lines, 0);
  const listed = each.map(([name, lines]) => `${name} ${lines}`).join(', ');
  assert.ok(
    sum > 1000 && sum <= MOST_PACKAGE_LINES,
    `${sum} lines of ${MOST_PACKAGE_LINES}: ${listed}`,
  );
});

test('a call passes few functions and files, from client.call to the handler and back', async () => {
  const functions = await functionsOf(MODULE, 'oneCall');
  const files = new Set(functions.map((name) => name.split(':')[0]));
  assert.ok(files.has('js/agent/client.js') && files.has('js/session/call.js'), 'they are counted');
  const listed = `${functions.length} functions in ${files.size} files:\n${functions.join('\n')}`;
  assert.ok(functions.length <= MOST_FUNCTIONS && files.size <= MOST_FILES, listed);
});
