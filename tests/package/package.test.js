// The package as a stranger gets it: packed, installed into an empty project, and used in Node, through
// esbuild, through Vite, in a page without a bundler, and from TypeScript.
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { EXPORTS, PAGES } from '../../scripts/entries.js';
import {
  EXPECTED,
  SMOKE,
  install,
  newProject,
  npm,
  openPages,
  pack,
  pageOf,
  root,
} from '../support/packed.js';
import { namelessTypes } from '../support/public-types.js';
import { writeSamples } from '../support/samples.js';

const bin = (name) => join(root, 'node_modules/.bin', name);
/** What a user may write after `from`. */
const entries = Object.keys(EXPORTS).map((path) => `abp-bridge${path.slice(1)}`);
/** The newest TypeScript, and the oldest that serves. */
const COMPILERS = ['typescript', 'typescript-5'];
let project, packed, pages;

before(async () => {
  ({ project, packed } = newProject());
  const [listed] = JSON.parse(npm('pack', '--dry-run', '--ignore-scripts', '--json'));
  assert.deepEqual(
    listed.files
      .map(({ path }) => path)
      .filter((path) => !/^(js|dist|docs|templates)\//.test(path)),
    [
      ...['CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'SECURITY.md'],
      ...['examples/sieve.c', 'package.json', 'src/abp_token.h'],
    ],
  );
  cpSync(join(root, 'tests/package/app.js'), join(project, 'app.js'));
  writeFileSync(join(project, 'index.html'), pageOf('/main.js'));
  writeFileSync(join(project, 'esbuild.html'), pageOf('/out/main.js'));
  const files = '/node_modules/abp-bridge/dist/page/';
  const imports = Object.fromEntries(
    Object.keys(PAGES).map((name) => [
      name === 'abp-bridge' ? name : `abp-bridge/${name}`,
      `${files}${name}.js`,
    ]),
  );
  const map = `<script type="importmap">${JSON.stringify({ imports })}</script>`;
  writeFileSync(join(project, 'direct.html'), pageOf('/main.js', map));
  writeFileSync(join(project, 'app.html'), pageOf('/app.js', map));
  const bundle = JSON.stringify({ imports: { 'abp-bridge': `${files}abp-bridge.bundle.js` } });
  const policy = `<meta http-equiv="content-security-policy" content="script-src 'self' 'unsafe-inline'">`;
  const oneFile = `<script type="importmap">${bundle}</script>`;
  writeFileSync(join(project, 'bundle.html'), pageOf('/bundle.js', oneFile));
  writeFileSync(join(project, 'bundle-strict.html'), pageOf('/bundle.js', policy + oneFile));
  writeFileSync(
    join(project, 'bundle.js'),
    "import { smoke } from './smoke.js';\nglobalThis.outcome = await smoke().catch(String);\n",
  );
  pages = await openPages(project);
});
after(async () => {
  await pages?.close();
  rmSync(project, { recursive: true, force: true });
});

const inNode = (script) =>
  execFileSync('node', ['--input-type=module', '-e', script], { cwd: project, encoding: 'utf8' });

test('in Node', () => {
  assert.equal(inNode("import './main.js'; console.log(await outcome);").trim(), EXPECTED);
});

test('every entry can be imported in Node, and by name from TypeScript', () => {
  const consumer = readFileSync(join(root, 'tests/types/consumer.ts'), 'utf8');
  for (const entry of entries) {
    assert.match(inNode(`console.log(Object.keys(await import('${entry}')).join());`), /\w/);
    assert.ok(consumer.includes(`from '${entry}';`), `consumer.ts does not import ${entry}`);
  }
});

test('what its README and its documents link to is in it', () => {
  const folder = join(project, 'node_modules/abp-bridge');
  const documents = readdirSync(join(folder, 'docs')).map((name) => `docs/${name}`);
  const top = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'];
  for (const name of [...top, ...documents].filter((path) => path.endsWith('.md'))) {
    const links = readFileSync(join(folder, name), 'utf8').matchAll(/\]\(([^)#]+)/g);
    for (const [, link] of links) {
      if (/^https?:/.test(link)) continue;
      assert.ok(existsSync(join(folder, dirname(name), link)), `${name} links to ${link}`);
    }
  }
});

test('in a page without a bundler', async () => {
  assert.equal(await pages.outcomeOf('/direct.html'), EXPECTED);
});

for (const [what, path] of [
  ['', '/bundle.html'],
  [' that forbids WebAssembly', '/bundle-strict.html'],
]) {
  test(`in a page${what}, as one file that loads no other`, async () => {
    pages.requested.length = 0;
    assert.equal(await pages.outcomeOf(path), SMOKE);
    const files = pages.requested.filter((path) => path.includes('/dist/'));
    assert.deepEqual(files, ['/node_modules/abp-bridge/dist/page/abp-bridge.bundle.js']);
  });
}

test('each file for pages has its source map, which leads to the sources', () => {
  const folder = join(project, 'node_modules/abp-bridge/dist/page');
  const names = readdirSync(folder).filter((name) => name.endsWith('.js'));
  assert.ok(names.length > Object.keys(PAGES).length);
  for (const name of names) {
    const [, map] = /\n\/\/# sourceMappingURL=(.+)\n$/.exec(
      readFileSync(join(folder, name), 'utf8'),
    );
    const { sources, sourcesContent } = JSON.parse(readFileSync(join(folder, map), 'utf8'));
    assert.equal(sources.length, sourcesContent.length);
    for (const source of sources.filter((source) => source.includes('/js/'))) {
      assert.ok(source.includes('node_modules') || existsSync(join(folder, source)), source);
    }
  }
});

/** What it says, which is nothing if it has nothing to warn of. */
function bundle(command, ...args) {
  const { status, stdout, stderr } = spawnSync(bin(command), args, {
    cwd: project,
    encoding: 'utf8',
  });
  assert.deepEqual({ status, said: stdout + stderr }, { status: 0, said: '' });
}

test('through esbuild', async () => {
  const args = ['--bundle', '--splitting', '--format=esm', '--outdir=out', '--log-level=warning'];
  bundle('esbuild', 'main.js', ...args);
  assert.equal(await pages.outcomeOf('/esbuild.html'), EXPECTED);
});

test('through Vite', async () => {
  // It warns of what takes long, as all does on a busy machine.
  const checks = '{ build: { rolldownOptions: { checks: { bundlerTimings: false } } } }';
  writeFileSync(join(project, 'vite.config.js'), `export default ${checks};`);
  bundle('vite', 'build', '--logLevel', 'warn', '--base', '/dist/');
  assert.equal(await pages.outcomeOf('/dist/index.html'), EXPECTED);
});

/** Runs a program of a package that is installed here, which must succeed. */
const check = (path, ...args) =>
  execFileSync('node', [join(root, 'node_modules', path), ...args], {
    cwd: project,
    stdio: 'pipe',
    encoding: 'utf8',
  });

for (const compiler of COMPILERS) {
  test(`from TypeScript: ${compiler}`, () => {
    cpSync(join(root, 'tests/types/consumer.ts'), join(project, 'consumer.ts'));
    const args = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom'];
    const modules = ['--module', 'nodenext', '--moduleResolution', 'nodenext', 'consumer.ts'];
    check(`${compiler}/bin/tsc`, ...args, ...modules);
  });

  test(`what is inferred of an app, and what does not compile: ${compiler}`, () => {
    check(`${compiler}/bin/tsc`, '-p', join(root, 'tests/types'));
  });
}

test('the samples of the documents compile', () => {
  const { project: samples, count } = writeSamples(join(root, 'build/samples'));
  assert.ok(count > 20);
  check('typescript/bin/tsc', '-p', samples);
});

test('every type that is met on the way can be imported by name', () => {
  const declarations = Object.values(EXPORTS).map(({ types }) => join(root, types));
  assert.deepEqual(namelessTypes(declarations), []);
});

test('its exports and types are found by every resolution that can load ES modules', () => {
  check('@arethetypeswrong/cli/dist/index.js', packed, '--profile', 'esm-only');
  const said = check('publint/src/cli.js', join(project, 'node_modules/abp-bridge'), '--strict');
  assert.match(said, /All good!/);
});

test("the gateway's package takes this one, and lists an app", async () => {
  const folder = join(project, 'gateway');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  install(folder, packed, pack(project, '--workspace', 'abp-bridge-gateway'));
  // What it asks for must be had from a registry, and be the version beside it.
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  const { dependencies } = packages['node_modules/abp-bridge-gateway'];
  assert.match(dependencies['abp-bridge'], /^\^\d/);
  const copies = Object.keys(packages).filter((path) => path.endsWith('/abp-bridge'));
  assert.deepEqual(copies, ['node_modules/abp-bridge']);
  const gateway = async (...args) => {
    const env = { CHROME_PATH: process.env.CHROMIUM ?? '/usr/bin/chromium', ...process.env };
    const command = ['--no-install', 'abp-bridge-gateway', ...args];
    return (await promisify(execFile)('npx', command, { cwd: folder, env })).stdout;
  };
  assert.match(await gateway('--help'), /^Usage: abp-bridge-gateway COMMAND/m);
  const listed = await gateway('list', `${pages.url}/app.html`, '--temporary');
  assert.match(listed, /^Packed app 1\n\nnumber\.add$/m);
});
