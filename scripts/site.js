// Builds the site of the documents in build/site. Its generator is installed in its own folder, when it is needed.
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, statSync, utimesSync } from 'node:fs';
import { PAGES } from './entries.js';
import { buildModules } from './modules.js';

/** @param {string} path */
const age = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);
/**
 * @param {string} command
 * @param {...string} args
 */
const run = (command, ...args) =>
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });

const installed = 'docs/site/node_modules/.package-lock.json';
if (age(installed) < age('docs/site/package-lock.json')) {
  // Not `npm ci`: Pagefind has a package for each system, and a registry need not have all of them.
  run(
    'npm',
    'install',
    '--no-save',
    '--prefix',
    'docs/site',
    '--silent',
    '--no-audit',
    '--no-fund',
  );
  utimesSync(installed, new Date(), new Date());
}
rmSync('build/site', { recursive: true, force: true });
run(process.execPath, 'docs/site/reference.js');
run('docs/site/node_modules/.bin/eleventy', '--config=docs/site/eleventy.config.js', '--quiet');
await buildModules(PAGES, 'build/site/abp', { forPages: true }); // what dist/page has
run('docs/site/node_modules/.bin/pagefind', '--site', 'build/site', '--silent');
console.log(
  'The site is in build/site: serve that folder, with `npx http-server build/site` for example',
);
