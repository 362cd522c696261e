/** The packages as a stranger gets them: packed, and installed into a project of its own. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { IMPORTED, filesIn, pack } from '../../scripts/pack.js';
import { launch } from './browser.js';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** What tests/package/smoke.js says where all is well. */
export const SMOKE = '42,INVALID_PARAMS,enough';
/** And main.js there, which uses the entries, too. */
export const EXPECTED = `${SMOKE},42,200,0.1,BLOCKED,No worker could be started: no workers today,true,false,true,NOT_SUPPORTED,true,INVALID_PARAMS,function,function,6,1,true`;

/** @type {Record<string, string>} */
const TYPES = { '.html': 'text/html', '.js': 'text/javascript' };

/**
 * Runs npm in the repository.
 * @param {string[]} args
 * @returns {string} what it says
 */
export const npm = (...args) => execFileSync('npm', args, { cwd: root, encoding: 'utf8' });

/**
 * Installs packages.
 * @param {string} cwd the project
 * @param {string[]} files of the packages
 */
export const install = (cwd, ...files) =>
  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', ...files], { cwd });

/**
 * A new project that has the packages, and scripts that use them. `PACKED` is a folder with their
 * files, if they have been packed: packing builds, so of tests that run at once only one may do it.
 * @returns {{ project: string, packed: Record<string, string> }} the folder, and the files of the
 *   packages by their names
 */
export function newProject() {
  const project = mkdtempSync(join(tmpdir(), 'abp-bridge-'));
  const packed = process.env.PACKED ? filesIn(process.env.PACKED) : pack(project);
  writeFileSync(join(project, 'package.json'), '{ "type": "module", "private": true }');
  install(project, ...Object.values(packed));
  // Who uses an entry for a framework has that framework.
  for (const name of ['react', 'svelte', 'vue']) {
    symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name));
  }
  for (const name of ['smoke.js', 'entries.js', 'main.js']) {
    cpSync(join(root, 'tests/package', name), join(project, name));
  }
  return { project, packed };
}

/**
 * A page that runs a module, and its other elements.
 * @param {string} script
 * @param {string} [more]
 */
export const pageOf = (script, more = '') =>
  `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">${more}<script type="module" src="${script}"></script>`;

/** Where a project's page finds the main package's files for pages without a bundler. */
export const FILES = '/node_modules/abp-bridge/dist/page/';
const imports = Object.fromEntries(
  IMPORTED.flatMap(({ name, entries }) =>
    Object.entries(entries).flatMap(([imported, { page, single }]) => {
      const file = page ?? single;
      return file ? [[imported, `/node_modules/${name}/dist/page/${file}.js`]] : [];
    }),
  ),
);
/** Gives a page the entries by their names. */
export const importMap = `<script type="importmap">${JSON.stringify({ imports })}</script>`;

/**
 * A page without a bundler that is an app.
 * @param {string} project
 */
export function writeAppPage(project) {
  cpSync(join(root, 'tests/package/app.js'), join(project, 'app.js'));
  writeFileSync(join(project, 'app.html'), pageOf('/app.js', importMap));
}

/**
 * Runs programs of packages that are installed here, which must succeed.
 * @param {string} cwd
 * @returns {(path: string, ...args: string[]) => string} what it says
 */
export const programIn =
  (cwd) =>
  (path, ...args) =>
    execFileSync('node', [join(root, 'node_modules', path), ...args], {
      cwd,
      stdio: 'pipe',
      encoding: 'utf8',
    });

/**
 * Serves a project to a browser.
 * @param {string} project
 */
export async function openPages(project) {
  /** The paths that pages have asked for. @type {string[]} */
  const requested = [];
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://localhost');
    requested.push(pathname);
    const path = join(project, pathname);
    try {
      const content = readFileSync(path);
      response.writeHead(200, { 'content-type': TYPES[extname(path)] }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const url = `http://127.0.0.1:${port}`;
  const browser = await launch();
  return {
    browser,
    requested,
    url,
    /**
     * What a page has as its `outcome`, once it has one.
     * @param {string} path
     * @param {string} [origin]
     */
    async outcomeOf(path, origin = url) {
      const page = await browser.newPage();
      const failed = new Promise((_resolve, reject) => page.on('pageerror', reject));
      await page.goto(origin + path);
      await Promise.race([page.waitForFunction(() => globalThis.outcome), failed]);
      return page.evaluate(() => globalThis.outcome);
    },
    async close() {
      await browser.close();
      server.close();
    },
  };
}
