// What a page downloads stays within its budget, whichever bundler makes the page: whoever adds, takes away as much.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { before, test } from 'node:test';
import { measureParts, measureSides } from '../../scripts/size.js';

const read = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
const budgets = JSON.parse(read('budgets.json'));
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

test('the table that is checked in shows what is loaded now', () => {
  const table = read('sizes.md');
  for (const [bundler, sizes] of Object.entries(sides)) {
    const row = table.split('\n').find((line) => line.startsWith(`| ${bundler} `));
    const shown = row.match(/\d[\d,]*(?= )/g).map((text) => Number(text.replace(',', '')));
    Object.values(sizes).forEach((bytes, i) => {
      const isNear = Math.abs(bytes - shown[i]) <= bytes / 100;
      assert.ok(isNear, `${bundler}: ${shown[i]}, now ${bytes}: npm run size -- --write`);
    });
  }
});

test('each file and each function is told apart', async () => {
  const parts = await measureParts();
  for (const name of ['js/session/endpoint.js', 'abp_take'])
    assert.ok(parts[name].both > 1000, name);
  assert.ok(!Object.hasOwn(parts, 'undefined'));
});

test('only the doors of the two sides begin to load the core by themselves', () => {
  const lib = new URL('../../dist/lib/', import.meta.url);
  const names = readdirSync(lib, { recursive: true }).filter((name) => name.endsWith('.js'));
  const begin = names.filter((name) => /^(void )?ready/m.test(readFileSync(new URL(name, lib))));
  assert.deepEqual(begin.sort(), ['parts/connect-door.js', 'parts/expose-door.js']);
});

test('what a side loads later does not bring the other side with it', () => {
  const parts = new URL('../../dist/lib/parts/', import.meta.url);
  const importsOf = (name) =>
    [...readFileSync(new URL(name, parts), 'utf8').matchAll(/^import .* from "\.\/(.+)";$/gm)].map(
      ([, to]) => to,
    );
  const loadedWith = (name) => {
    const files = new Set([name]);
    for (const file of files) for (const other of importsOf(file)) files.add(other);
    return files;
  };
  for (const name of ['agent-parts.js', 'shared-parts.js', 'trace.js'])
    assert.ok(!loadedWith(name).has('later-app.js'), name);
  for (const name of ['app-parts.js', 'memory.js', 'manifest.js'])
    assert.ok(!loadedWith(name).has('later-agent.js'), name);
  // Both sides are in one file. What names the other's classes there would keep them in every page.
  const used = readdirSync(parts)
    .filter((name) =>
      /^(app|agent|shared|small|data|later)-|^(memory|local-agent|trace)\.js$/.test(name),
    )
    .flatMap((name) => [
      ...readFileSync(new URL(name, parts), 'utf8').matchAll(
        /^import \{(.*)\} from "\.\/common\.js";$/gm,
      ),
    ])
    .flatMap(([, names]) => names.split(',').map((name) => name.trim().split(' as ').at(-1)));
  assert.ok(used.includes('AbpError'));
  assert.deepEqual(
    used.filter((name) => /^(Client|Connection|Exposed|Registry)\b/.test(name)),
    [],
  );
});
