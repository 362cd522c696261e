/** `doctor`: what there is, what is missing, and the line that mends it. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { EXIT } from '../errors.js';
import { lineOf } from '../texts.js';
import { browserMend, findBrowser } from '../find-browser.js';

const require = createRequire(import.meta.url);

/** The oldest release of Node that the program runs on. */
const MIN_NODE = [20, 16];

/** @param {string} name */
function versionOf(name) {
  for (const folder of require.resolve.paths(name) ?? []) {
    try {
      return JSON.parse(readFileSync(`${folder}/${name}/package.json`, 'utf8')).version;
    } catch {
      // It is in another of these folders.
    }
  }
  return undefined;
}

/** @param {string[]} _positionals @param {{ browser?: string }} values @param {import('../commands.js').Context} context */
export async function execute(_positionals, values, { version, dependencies = {} }) {
  let missing = 0;
  /** @param {string} what @param {string | undefined} found @param {string} mend */
  const report = (what, found, mend) => {
    if (!found) missing++;
    process.stdout.write(
      found ? `ok       ${what}: ${found}\n` : `missing  ${what}\n         mend: ${mend}\n`,
    );
  };
  report('abp-bridge-gateway', version, '');
  const [major, minor] = process.versions.node.split('.').map(Number);
  const isNew = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
  report(
    `Node ${MIN_NODE.join('.')} or later`,
    isNew ? process.versions.node : undefined,
    'install a current Node: https://nodejs.org',
  );
  for (const name of Object.keys(dependencies)) {
    report(name, versionOf(name), 'npm install abp-bridge-gateway');
  }
  let path;
  try {
    path = findBrowser(values.browser);
  } catch {
    // Told by the line below.
  }
  report('a browser', path, browserMend());
  if (path) {
    const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: 20_000 }).catch(
      () => ({ stdout: '' }),
    );
    report(
      'its version',
      lineOf(stdout) || undefined,
      `${path} does not start: try ${path} --version`,
    );
  }
  if (process.platform === 'linux' && process.getuid?.() === 0) {
    process.stdout.write(
      'note     as root, browsers run without their sandbox: use another user where you can\n',
    );
  }
  return missing ? EXIT.UNREACHABLE : EXIT.OK;
}
