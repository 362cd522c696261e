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

  test(`the template in TypeScript compiles, and a misspelt name or member is named where it stands: ${compiler}`, () => {
    const folder = join(project, `template-${compiler}`);
    cpSync(join(root, 'templates/typescript'), folder, { recursive: true });
    const compile = () => check(`${compiler}/bin/tsc`, '-p', folder);
    compile();
    /** Misspells a word in a file, and returns its line. */
    const misspell = (/** @type {string} */ file, /** @type {string} */ word, to = '') => {
      const code = readFileSync(join(folder, file), 'utf8');
      writeFileSync(join(folder, file), code.replace(word, to));
      return code.split('\n').findIndex((text) => text.includes(word)) + 1;
    };
    misspell('host/host.ts', "'report.write'", "'report.wirte'");
    const line = misspell('app/app.ts', 'description:', 'descripton:');
    const named = `app\\.ts\\(${line},\\d+\\): .*"descripton is not a member of a capability"`;
    assert.throws(compile, ({ stdout }) => {
      assert.match(stdout, new RegExp(named));
      return /of type '"report\.write"'/.test(stdout);
    });
  });

  test(`an iframe without its origin, or with a misspelt one, is told so: ${compiler}`, () => {
    const agent = "agent: { name: 'x', version: '1' }";
    const options = [
      `{ origin: 'https://app.example', ${agent} }`,
      `{ ${agent} }`,
      `{ orgin: 'https://app.example', ${agent} }`,
    ];
    const code = `import { connect } from 'abp-bridge';
export const connecting = (iframe: HTMLIFrameElement) => [
${options.map((each) => `  connect(iframe, ${each}),`).join('\n')}
];
`;
    writeFileSync(join(project, 'origin.ts'), code);
    const args = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom'];
    const modules = ['--module', 'nodenext', '--moduleResolution', 'nodenext', 'origin.ts'];
    let printed = '';
    try {
      check(`${compiler}/bin/tsc`, ...args, ...modules);
    } catch ({ stdout }) {
      printed = stdout;
    }
    // What is printed last is what it comes to; the oldest compiler goes through all kinds of
    // targets before.
    const errors = printed.split(/^(?=origin\.ts\()/m);
    const [missing, misspelt] = errors.map((text) => text.slice(text.lastIndexOf('verload')));
    assert.equal(errors.length, 2);
    assert.match(missing, /Property 'origin' is missing/);
    assert.match(misspelt, /'orgin' does not exist .* Did you mean to write 'origin'\?/);
    assert.doesNotMatch(misspelt, /SharedWorker/);
  });

  test(`the samples of the documents compile: ${compiler}`, () => {
    const { project: samples, count } = writeSamples(join(root, 'build/samples'));
    assert.ok(count > 20);
    check(`${compiler}/bin/tsc`, '-p', samples);
  });
}
