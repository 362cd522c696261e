#!/usr/bin/env node
/** `npx abp-bridge create TEMPLATE FOLDER`: a new project from one of the folders beside this file. */
import { cpSync, existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const templates = fileURLToPath(new URL('.', import.meta.url));
/** The folder in which this package is: node_modules, unless this is a clone. */
const modules = join(templates, '../..');
const names = readdirSync(templates, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .join(', ');
const usage = `Usage: npx abp-bridge create TEMPLATE FOLDER\nTemplates: ${names}`;
const read = (/** @type {string} */ path) => JSON.parse(readFileSync(path, 'utf8'));

/** The file that this package was installed from, or undefined: a registry may not have this version. */
function packedFile() {
  const lock = join(modules, '.package-lock.json');
  const installed = existsSync(lock) && read(lock).packages['node_modules/abp-bridge'];
  const [, path] = /^file:(.+)/.exec(installed?.resolved ?? '') ?? [];
  return path && resolve(modules, '..', path);
}

/** Makes the project. @param {string} template @param {string} name of its folder, or a path @returns {string} what is wrong; else '' */
function create(template, name) {
  if (!names.split(', ').includes(template))
    return `There is no template "${template}". There are: ${names}`;
  if (basename(modules) !== 'node_modules')
    return 'This is a clone: run `npm pack`, then `npx --package FILE abp-bridge create …` with the file that it made';
  const folder = resolve(name);
  if (existsSync(folder) && !(statSync(folder).isDirectory() && readdirSync(folder).length === 0))
    return `${name} exists and is not an empty folder: choose another name`;
  cpSync(join(templates, template), folder, { recursive: true });
  const file = join(folder, 'package.json');
  const about = read(file);
  about.name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-');
  const packed = packedFile();
  if (packed)
    about.dependencies['abp-bridge'] = `file:${relative(folder, packed).replaceAll('\\', '/')}`;
  writeFileSync(file, `${JSON.stringify(about, undefined, 2)}\n`);
  console.log(
    `Made from the template ${template}. Now:\n\n  cd "${name}"\n  npm install\n  npm start`,
  );
  return '';
}

const [command, template, name, ...more] = process.argv.slice(2);
const isWhole = command === 'create' && template && name && !more.length;
const wrong = isWhole ? create(template, name) : usage;
if (wrong) {
  console.error(wrong);
  process.exitCode = 1;
}
