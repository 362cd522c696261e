/** `doctor`: lists the requirements, and the commands that install missing ones. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { EXIT } from '../errors.js';
import { lineOf } from '../texts.js';
import { BROWSER_MEND, findBrowser } from '../find-browser.js';

const require = createRequire(import.meta.url);

/** The oldest release of Node that the program runs on. */
const MIN_NODE = [20, 16];

/**
 * Options for requesting the browser's version. A browser that hangs, or is stopped, ignores milder
 * signals.
 */
const OPTIONS = /** @type {const} */ ({
  timeout: 20_000,
  killSignal: 'SIGKILL',
  encoding: 'utf8',
  stdio: 'pipe',
});

/**
 * The result of a search, or undefined if it fails.
 * @template T
 * @param {() => T} find
 */
function attempt(find) {
  try {
    return find();
  } catch {
    return undefined;
  }
}

/**
 * A package's version.
 * @param {string} name
 */
function versionOf(name) {
  const folders = require.resolve.paths(name) ?? [];
  const read = (/** @type {string} */ folder) =>
    attempt(() => JSON.parse(readFileSync(`${folder}/${name}/package.json`, 'utf8')).version);
  return folders.map(read).find(Boolean);
}

/** @type {import('../commands.js').Execute} */
export async function execute(_positionals, values, { version, dependencies = {} }) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const isNew = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
  const path = attempt(() => findBrowser(values.browser));
  const install = 'npm install abp-bridge-gateway';
  /** The name, the version found, and the remedy. @type {(string | undefined)[][]} */
  const rows = [
    ['abp-bridge-gateway', version, ''],
    [
      `Node ${MIN_NODE.join('.')} or later`,
      isNew ? process.versions.node : undefined,
      'install a current Node: https://nodejs.org',
    ],
    ...Object.keys(dependencies).map((name) => [name, versionOf(name), install]),
    ['a browser', path, BROWSER_MEND],
  ];
  if (path) {
    const run = () => execFileSync(path, ['--version'], OPTIONS);
    const mend = `${path} does not start: try ${path} --version`;
    rows.push(['its version', lineOf(attempt(run)) || undefined, mend]);
  }
  for (const [what, found, mend] of rows) {
    process.stdout.write(
      found ? `ok       ${what}: ${found}\n` : `missing  ${what}\n         mend: ${mend}\n`,
    );
  }
  if (process.platform === 'linux' && process.getuid?.() === 0)
    process.stdout.write(
      'note     as root, browsers run without their sandbox: use another user where you can\n',
    );
  return rows.every(([, found]) => found) ? EXIT.OK : EXIT.UNREACHABLE;
}
