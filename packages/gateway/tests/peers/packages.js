/**
 * Programs of other packages, by npx: they are too heavy to be installed for those who do not run
 * these tests.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/**
 * Runs a package's program under Node 22, which npm has as a package.
 * @param {string} name and version
 * @param {string[]} command
 * @returns {Promise<{ code: number | null, stdout: string }>}
 */
export async function runPackage(name, command) {
  const child = spawn(
    'npx',
    ['--yes', '--package=node@22', `--package=${name}`, '--', ...command],
    {
      env: { CHROME_PATH: process.env.CHROMIUM ?? '/usr/bin/chromium', ...process.env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { code, stdout };
}
