// The entries of the packages, and all that must agree with them.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ENTRIES, MAIN, PACKAGES } from '../../scripts/entries.js';

const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('who has a core has a file of each entry for Cloudflare Workers beside its own, and nobody else', () => {
  for (const { name, manifest, entries, hasCore } of PACKAGES) {
    for (const [imported, { single }] of Object.entries(entries)) {
      const exported = manifest.exports[`.${imported.slice(name.length)}`];
      const { types, workerd, default: file } = exported;
      // The first condition that fits is taken.
      assert.deepEqual(Object.keys(exported)[0], 'types', imported);
      assert.match(types, /\.d\.ts$/);
      const own = hasCore && !single;
      assert.equal(workerd, own ? file.replace('/lib/', '/workerd/') : undefined, imported);
    }
  }
});

test('each entry has its source, and is used in the tests of types', () => {
  const consumer = read('tests/types/consumer.ts');
  for (const [imported, { source }] of Object.entries(ENTRIES)) {
    assert.ok(existsSync(new URL(`../../${source}`, import.meta.url)), source);
    assert.ok(consumer.includes(`from '${imported}';`), `${imported} in consumer.ts`);
  }
});

test('the main package has at most twelve entries', () => {
  const entries = Object.keys(MAIN.manifest.exports).filter((path) => path !== './package.json');
  assert.ok(entries.length <= 12, entries.join());
});

test('each entry for pages is used in the tests of the package', () => {
  const used = read('tests/package/entries.js');
  for (const [imported, { page }] of Object.entries(ENTRIES)) {
    if (page) assert.ok(used.includes(`from '${imported}';`), `${imported} in entries.js`);
  }
});

test('a build without arguments makes the files for pages and the types, too', () => {
  assert.match(read('scripts/build.sh'), /for what in \$\{@:-[^}]*\bpackage\b/);
});

test('all that name the version name the same one, and packages need exactly that of each other', () => {
  const { version } = MAIN.manifest;
  const [, native] = /^project\(abp VERSION (\S+)/m.exec(read('CMakeLists.txt'));
  const extension = JSON.parse(read('packages/inspector/extension/manifest.json'));
  const own = PACKAGES.map(({ manifest }) => manifest);
  const versions = [native, extension.version, ...own.map((each) => each.version)];
  assert.deepEqual([...new Set(versions)], [version]);
  const names = own.map(({ name }) => name);
  for (const { name, dependencies } of own) {
    for (const [other, range] of Object.entries(dependencies))
      if (names.includes(other)) assert.equal(range, version, `${name} needs ${other}`);
  }
  for (const name of ['plain', 'react', 'typescript']) {
    const { dependencies } = JSON.parse(read(`templates/${name}/package.json`));
    assert.equal(dependencies['abp-bridge'], `^${version}`);
  }
});
