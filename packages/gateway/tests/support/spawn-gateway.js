/** Starts the program, for tests and for what stands between it and a client. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const PROGRAM = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/** What the browser of the tests is started with, besides what the program gives it. */
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/**
 * @param {string[]} args
 * @param {{ env?: Record<string, string>, stdio?: any }} [options]
 */
export const spawnGateway = (args, { env, stdio = 'pipe' } = {}) =>
  spawn(process.execPath, [PROGRAM, ...args], {
    env: { ...process.env, CHROME_PATH: CHROMIUM, ...env },
    stdio,
  });
