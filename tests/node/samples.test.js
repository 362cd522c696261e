// What the documents quote is what is compiled and run. Their JavaScript and TypeScript is compiled
// by tests/package.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { DOCUMENTS } from '../../docs/site/navigation.js';

const root = new URL('../../', import.meta.url);
const read = (path) => readFileSync(new URL(path, root), 'utf8');
/** Without what depends on where it stands: how far it is indented. */
const lines = (code) => code.replace(/^ +/gm, '').trim();

test('the C in the documents stands in the examples', () => {
  const examples = readdirSync(new URL('demo/examples/', root), { recursive: true })
    .filter((path) => path.endsWith('.c'))
    .map((path) => lines(read(`demo/examples/${path}`)));
  let count = 0;
  for (const path of DOCUMENTS) {
    for (const [, code] of read(path).matchAll(/^```c\n(.*?)^```$/gms)) {
      count++;
      // "…" stands for what is left out.
      for (const part of code.split('…\n')) {
        const found = examples.some((text) => text.includes(lines(part)));
        assert.ok(found, `${path} quotes what no example has:\n${part}`);
      }
    }
  }
  assert.ok(count > 5);
});

test('the menu of the site lists every document', () => {
  const folders = readdirSync(new URL('packages/', root))
    .filter((name) => name !== 'node_modules')
    .map((name) => `packages/${name}`);
  for (const folder of folders) assert.ok(DOCUMENTS.includes(`${folder}/README.md`), folder);
  for (const folder of ['docs', ...folders.map((each) => `${each}/docs`)])
    for (const name of readdirSync(new URL(folder, root)).filter((name) => name.endsWith('.md')))
      assert.ok(DOCUMENTS.includes(`${folder}/${name}`), `navigation.js lacks ${folder}/${name}`);
});
