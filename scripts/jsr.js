// Makes build/jsr, the package for JSR: the sources, and the declarations that npm's package has.
// Packages of JSR are in a scope that belongs to whoever publishes them: node scripts/jsr.js SCOPE
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ENTRIES } from './entries.js';

const [, , scope] = process.argv;
if (!scope) throw new Error('usage: node scripts/jsr.js SCOPE');
const out = 'build/jsr';
rmSync(out, { recursive: true, force: true });

/**
 * @param {string} folder
 * @param {string} ending
 */
const filesIn = (folder, ending) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name));
/**
 * @param {string} path
 * @param {string} text
 */
function write(path, text) {
  const to = join(out, path);
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, text);
}

// Views of MCP Apps are files for their hosts.
const entries = Object.entries(ENTRIES).filter(([, { single = '' }]) => !single.includes('/'));
const types = new Map(
  entries.map(([, { source, types = source }]) => [
    source,
    `dist/types/${types.replace(/\.[jt]s$/, '.d.ts')}`,
  ]),
);
// These have no entry of their own.
const sources = [
  'js',
  'packages/binary/src',
  'packages/page/src',
  'packages/schemas/src',
  'packages/untrusted/src',
  ...new Set(entries.map(([, { source }]) => dirname(source))),
].filter((folder, _, all) => !all.some((other) => folder.startsWith(`${other}/`)));
for (const path of sources.flatMap((folder) => filesIn(folder, '.js'))) {
  const declared = types.get(path);
  const at = declared && relative(dirname(path), declared);
  const text = readFileSync(path, 'utf8');
  write(path, at ? `/* @ts-self-types="${at}" */\n${text}` : text);
}
for (const path of filesIn('dist/types', '.d.ts')) {
  // An import must name the file that is there.
  const text = readFileSync(path, 'utf8').replace(/(['"])(\.[^'"]*)\.js\1/g, '$1$2.d.ts$1');
  write(path, text);
}
for (const name of readdirSync('dist').filter((name) => name.endsWith('.js'))) {
  write(`dist/${name}`, readFileSync(`dist/${name}`, 'utf8'));
}
const documents = [
  'docs',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
];
const generator = join('docs', 'site');
for (const name of documents)
  cpSync(name, join(out, name), { recursive: true, filter: (from) => from !== generator });

/** @param {string} path */
const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const { version, license, dependencies, peerDependencies } = read('package.json');
const { devDependencies } = read('packages/frameworks/package.json');
write(
  'jsr.json',
  JSON.stringify(
    {
      name: `@${scope}/abp-bridge`,
      version,
      license,
      exports: Object.fromEntries(entries.map(([path, { source }]) => [path, `./${source}`])),
      imports: Object.fromEntries(
        // JSR takes no `>=`: of what npm takes, the version that the tests have.
        Object.keys({ ...dependencies, ...peerDependencies }).map((name) => [
          name,
          `npm:${name}@${dependencies[name] ?? devDependencies[name]}`,
        ]),
      ),
    },
    null,
    2,
  ),
);
