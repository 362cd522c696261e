// The package from TypeScript, by the compilers that COMPILERS names: the newest, and the oldest
// that serves.
import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { newProject, programIn, root } from '../support/packed.js';
import { writeSamples } from '../support/samples.js';

const { COMPILERS = 'typescript typescript-5' } = process.env;
let project, check;

before(() => {
  ({ project } = newProject());
  check = programIn(project);
});
after(() => rmSync(project, { recursive: true, force: true }));

for (const compiler of COMPILERS.split(' ')) {
  test(`from TypeScript: ${compiler}`, () => {
    cpSync(join(root, 'tests/types/consumer.ts'), join(project, 'consumer.ts'));
    const args = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom'];
    const modules = ['--module', 'nodenext', '--moduleResolution', 'nodenext', 'consumer.ts'];
    check(`${compiler}/bin/tsc`, ...args, ...modules);
  });

  test(`what is inferred of an app, and what does not compile: ${compiler}`, () => {
    check(`${compiler}/bin/tsc`, '-p', join(root, 'tests/types'));
  });

  test(`the template in TypeScript compiles, and a misspelt name is told with those that there are: ${compiler}`, () => {
    const folder = join(project, `template-${compiler}`);
    cpSync(join(root, 'templates/typescript'), folder, { recursive: true });
    check(`${compiler}/bin/tsc`, '-p', folder);
    const host = join(folder, 'host/host.ts');
    const code = readFileSync(host, 'utf8');
    writeFileSync(host, code.replace("'report.write'", "'report.wirte'"));
    const wrong = () => check(`${compiler}/bin/tsc`, '-p', folder);
    assert.throws(wrong, ({ stdout }) => /of type '"report\.write"'/.test(stdout));
  });

  test(`an iframe without its origin, or with a misspelt one, is told so: ${compiler}`, () => {
    const said = (/** @type {string} */ options) => {
      const code = `import { connect } from 'abp-bridge';
export const connecting = (iframe: HTMLIFrameElement) => connect(iframe, ${options});
`;
      writeFileSync(join(project, 'origin.ts'), code);
      const args = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom'];
      const modules = ['--module', 'nodenext', '--moduleResolution', 'nodenext', 'origin.ts'];
      try {
        check(`${compiler}/bin/tsc`, ...args, ...modules);
      } catch ({ stdout }) {
        return stdout;
      }
      return '';
    };
    const agent = "agent: { name: 'x', version: '1' }";
    assert.equal(said(`{ origin: 'https://app.example', ${agent} }`), '');
    // What is said last is what it comes to; the oldest compiler goes through all kinds of targets
    // before.
    const last = (/** @type {string} */ text) => text.slice(text.lastIndexOf('verload'));
    assert.match(last(said(`{ ${agent} }`)), /Property 'origin' is missing/);
    const misspelt = last(said(`{ orgin: 'https://app.example', ${agent} }`));
    assert.match(misspelt, /'orgin' does not exist .* Did you mean to write 'origin'\?/);
    assert.doesNotMatch(misspelt, /SharedWorker/);
  });

  test(`a misspelt member of a capability is named where it stands: ${compiler}`, () => {
    const folder = join(project, `members-${compiler}`);
    cpSync(join(root, 'templates/typescript'), folder, { recursive: true });
    const app = join(folder, 'app/app.ts');
    const code = readFileSync(app, 'utf8');
    writeFileSync(app, code.replace('description:', 'descripton:'));
    const wrong = () => check(`${compiler}/bin/tsc`, '-p', folder);
    const line = code.split('\n').findIndex((text) => text.includes('description:')) + 1;
    const named = `app\\.ts\\(${line},\\d+\\): .*"descripton is not a member of a capability"`;
    assert.throws(wrong, ({ stdout }) => new RegExp(named).test(stdout));
  });

  test(`the samples of the documents compile: ${compiler}`, () => {
    const { project: samples, count } = writeSamples(join(root, 'build/samples'));
    assert.ok(count > 20);
    check(`${compiler}/bin/tsc`, '-p', samples);
  });
}
