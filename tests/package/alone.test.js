// Each package installs alone, with what it needs of ours and nothing else.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MAIN, PACKAGES } from '../../scripts/entries.js';
import { install, newProject } from '../support/packed.js';

let project, packed;
before(() => {
  ({ project, packed } = newProject());
});
after(() => rmSync(project, { recursive: true, force: true }));

for (const { name, manifest, entries: own } of PACKAGES) {
  if (name === MAIN.name || !Object.keys(own).length) continue;
  test(`${name} installs alone, with what it needs of ours`, (t) => {
    const alone = mkdtempSync(join(tmpdir(), 'abp-bridge-alone-'));
    t.after(() => rmSync(alone, { recursive: true, force: true }));
    writeFileSync(join(alone, 'package.json'), '{ "type": "module", "private": true }');
    /** @param {string} of */
    const closure = (of) => {
      const { dependencies = {} } = PACKAGES.find((each) => each.name === of).manifest;
      return [
        of,
        ...Object.keys(dependencies)
          .filter((other) => other in packed)
          .flatMap(closure),
      ];
    };
    const needed = [...new Set(closure(name))];
    install(alone, ...needed.map((each) => packed[each]));
    const there = readdirSync(join(alone, 'node_modules/@abp-bridge'));
    const wanted = needed.flatMap((each) => each.split('@abp-bridge/')[1] ?? []);
    assert.deepEqual(there.sort(), wanted.sort());
    // An adapter's SDK is its user's.
    const sdks = Object.keys(manifest.peerDependencies ?? {});
    const imported = Object.keys(own).filter((each) => !sdks.length || !/sdk/.test(each));
    const script = `for (const entry of ${JSON.stringify(imported)})
      console.log(entry, Object.keys(await import(entry)).length > 0);`;
    const args = ['--input-type=module', '-e', script];
    const expected = imported.map((entry) => `${entry} true\n`);
    assert.equal(execFileSync('node', args, { cwd: alone, encoding: 'utf8' }), expected.join(''));
  });
}
