// What a page downloads stays within its budget, whichever bundler makes the page: whoever adds,
// takes away as much.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { measureParts, measureSides } from '../../scripts/size.js';

const read = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
const budgets = JSON.parse(read('budgets.json'));
/** Files that the main entry may load: each is a request, and a chunk of a bundler. */
const MOST_FILES = 18;
const lib = new URL('../../dist/lib/', import.meta.url);
const readLib = (name) => readFileSync(new URL(name, lib), 'utf8');
/** What a file imports statically, and what it imports on demand. */
const [STATIC, ANY] = [
  /^(?:import|export) [^;]*?"(\..+)";$/gm,
  /(?:^(?:import|export) [^;]*?|\bimport\()"(\..+?)"/gm,
];
/** What is loaded with a file of dist/lib: itself, and what it imports. */
function loadedWith(file, imports = STATIC) {
  const files = new Set([file]);
  for (const each of files)
    for (const [, to] of readLib(each).matchAll(imports)) files.add(join(each, '..', to));
  return files;
}
let sides;

before(async () => {
  sides = await measureSides();
});

for (const [bundler, budget] of Object.entries(budgets)) {
  test(`by ${bundler}, each side is within its budget`, () => {
    const over = Object.entries(budget).filter(([side, most]) => sides[bundler][side] > most);
    assert.deepEqual(
      over.map(([side, most]) => `${side}: ${sides[bundler][side]} bytes of ${most}`),
      [],
      'see npm run size',
    );
  });
}

test('every bundler has a budget', () => {
  assert.deepEqual(Object.keys(budgets), Object.keys(sides));
});

test('each file and each function is told apart', async () => {
  const parts = await measureParts();
  for (const name of ['js/session/endpoint.js', 'abp_take'])
    assert.ok(parts[name].both > 1000, name);
  assert.ok(!Object.hasOwn(parts, 'undefined'));
});

test('only the doors of the two sides begin to load the core by themselves', () => {
  const names = readdirSync(lib, { recursive: true }).filter((name) => name.endsWith('.js'));
  const begin = names.filter((name) => /^(void )?ready/m.test(readLib(name)));
  assert.deepEqual(begin.sort(), ['parts/connect-door.js', 'parts/expose-door.js']);
});

test('the main entry is few files', () => {
  const files = loadedWith('index.js', ANY);
  assert.ok(['parts/schema.js', 'parts/abp-js.js'].every((name) => files.has(name)));
  assert.ok(files.size <= MOST_FILES, `${files.size} of ${MOST_FILES}: ${[...files].join(' ')}`);
});

test('a part that is loaded later is one file of its own, one that all share, and those that are there', () => {
  const [first, all] = [STATIC, ANY].map((imports) => loadedWith('index.js', imports));
  const parts = [...all].filter((name) => !first.has(name));
  for (const name of parts) {
    const own = [...loadedWith(name)].filter((file) => !first.has(file) && file !== name);
    assert.deepEqual(
      own.filter((file) => file !== 'parts/later-common.js'),
      name === 'parts/schema.js' ? ['parts/app-parts.js'] : [],
      name,
    );
  }
});

test('what a side loads later does not bring the other side with it', () => {
  const declares = (name, declared) =>
    [...loadedWith(`parts/${name}.js`)].some(
      (file) => file !== 'parts/common.js' && readLib(file).includes(`\nclass ${declared} `),
    );
  assert.ok(declares('local-agent', 'Client') && declares('foreign', 'Reports'));
  for (const name of ['agent-parts', 'trace']) assert.ok(!declares(name, 'Connection'), name);
  for (const name of ['app-parts', 'memory', 'manifest', 'schema'])
    assert.ok(!declares(name, 'Client'), name);
  // Both sides are in one file. What names the other's classes there would keep them in every page.
  const used = readdirSync(new URL('parts', lib))
    .filter((name) => /^(app|agent|later)-.*\.js$|^(memory|local-agent|trace)\.js$/.test(name))
    .flatMap((name) => [
      ...readLib(`parts/${name}`).matchAll(/^import \{(.*)\} from "\.\/common\.js";$/gm),
    ])
    .flatMap(([, names]) => names.split(',').map((name) => name.trim().split(' as ').at(-1)));
  assert.ok(used.includes('AbpError'));
  assert.deepEqual(
    used.filter((name) => /^(Client|Connection|Exposed|Registry)\b/.test(name)),
    [],
  );
});
