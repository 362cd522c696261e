// Builds the site of the documents in build/site. Its generator is installed in its own folder, when it is needed.
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, statSync, utimesSync } from 'node:fs';
import { buildPages } from './pages.js';

/** @param {string} path */
const age = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);
/**
 * @param {string} command
 * @param {...string} args
 */
const run = (command, ...args) =>
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });

const installed = 'site/node_modules/.package-lock.json';
if (age(installed) < age('site/package-lock.json')) {
  // Not `npm ci`: Pagefind has a package for each system, and a registry need not have all of them.
  run('npm', 'install', '--no-save', '--prefix', 'site', '--silent', '--no-audit', '--no-fund');
  utimesSync(installed, new Date(), new Date());
}
rmSync('build/site', { recursive: true, force: true });
run('site/node_modules/.bin/eleventy', '--config=site/eleventy.config.js', '--quiet');
await buildPages('build/site/abp'); // what dist/page has
run('site/node_modules/.bin/pagefind', '--site', 'build/site', '--silent');
