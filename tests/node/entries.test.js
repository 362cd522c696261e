// The entries of the package, and all that must agree with them.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ENTRIES, EXPORTS, PAGES } from '../../scripts/entries.js';

const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('each entry has a file for Cloudflare Workers beside its own, or needs no other', () => {
  for (const [path, { single }] of Object.entries(ENTRIES)) {
    const { types, workerd, default: file } = EXPORTS[path];
    // The first condition that fits is taken.
    assert.deepEqual(Object.keys(EXPORTS[path])[0], 'types', path);
    assert.match(types, /\.d\.ts$/);
    assert.equal(workerd, single ? undefined : file.replace('/lib/', '/workerd/'), path);
  }
});

test('each entry has its source, and is used in the tests of types', () => {
  const consumer = read('tests/types/consumer.ts');
  for (const [path, { source }] of Object.entries(ENTRIES)) {
    assert.ok(existsSync(new URL(`../../${source}`, import.meta.url)), source);
    assert.ok(consumer.includes(`from 'abp-bridge${path.slice(1)}';`), `${path} in consumer.ts`);
  }
});

test('each entry for pages is used in the tests of the package', () => {
  const used = read('tests/package/entries.js');
  for (const name of Object.keys(PAGES)) {
    const path = name === 'abp-bridge' ? name : `abp-bridge/${name}`;
    assert.ok(used.includes(`from '${path}';`), `${path} in tests/package/entries.js`);
  }
});

test('a build without arguments makes the files for pages and the types, too', () => {
  assert.match(read('scripts/build.sh'), /for what in \$\{@:-[^}]*\bpackage\b/);
});

test('all that name the version name the same one', () => {
  const { version } = JSON.parse(read('package.json'));
  const gateway = JSON.parse(read('packages/gateway/package.json'));
  const [, native] = /^project\(abp VERSION (\S+)/m.exec(read('CMakeLists.txt'));
  const extension = JSON.parse(read('packages/inspector/extension/manifest.json'));
  assert.deepEqual([gateway.version, native, extension.version], [version, version, version]);
  const templates = ['plain', 'react', 'typescript'].map((name) =>
    read(`templates/${name}/package.json`),
  );
  const dependents = [gateway, ...templates.map((text) => JSON.parse(text))];
  for (const { dependencies } of dependents)
    assert.equal(dependencies['abp-bridge'], `^${version}`);
});
