// The package as tools that look at packages see it, and beside the gateway's.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { PACKAGES } from '../../scripts/entries.js';
import { pack } from '../../scripts/pack.js';
import {
  install,
  newProject,
  openPages,
  programIn,
  root,
  writeAppPage,
} from '../support/packed.js';
import { namelessTypes } from '../support/public-types.js';

let project, packed, pages, check;

before(async () => {
  ({ project, packed } = newProject());
  check = programIn(project);
  writeAppPage(project);
  pages = await openPages(project);
});
after(async () => {
  await pages?.close();
  rmSync(project, { recursive: true, force: true });
});

test('every type that is met on the way can be imported by name', () => {
  // The driver is for these packages alone: its types have no names for others.
  const declarations = PACKAGES.flatMap(({ folder, manifest }) =>
    Object.entries(manifest.exports ?? {}).flatMap(([path, { types }]) =>
      types && path !== './driver' ? [join(root, folder, types)] : [],
    ),
  );
  assert.deepEqual(namelessTypes(declarations), []);
});

test('its exports and types are found by every resolution that can load ES modules', () => {
  for (const [name, file] of Object.entries(packed)) {
    check('@arethetypeswrong/cli/dist/index.js', file, '--profile', 'esm-only');
    const said = check('publint/src/cli.js', join(project, 'node_modules', name), '--strict');
    assert.match(said, /All good!/);
  }
});

test("the gateway's package takes these, and lists an app", async () => {
  const folder = join(project, 'gateway');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  const gateways = PACKAGES.filter(({ name }) => name === 'abp-bridge-gateway');
  install(folder, ...Object.values({ ...packed, ...pack(project, gateways) }));
  // What it asks for must be had from a registry, and be the version beside it.
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  const { dependencies } = packages['node_modules/abp-bridge-gateway'];
  assert.match(dependencies['abp-bridge'], /^\d/);
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

test('stopcheck takes these, and names its presses', async () => {
  const folder = join(project, 'stopcheck');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  const programs = PACKAGES.filter(({ name }) => name === 'stopcheck');
  install(folder, ...Object.values({ ...packed, ...pack(project, programs) }));
  const args = [
    '--no-install',
    'stopcheck',
    'abp',
    '--dry-run',
    '--tool=number.add',
    `${pages.url}/app.html`,
  ];
  const { stdout } = await promisify(execFile)('npx', args, { cwd: folder });
  assert.match(stdout, /^abp, http.*at most 19 calls of number\.add with$/m);
});
