/** The program itself, as a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export const PROGRAM = fileURLToPath(new URL('../../src/main.js', import.meta.url));

/** What the browser of the tests is started with, besides what the program gives it. */
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/**
 * @param {string[]} args
 * @param {{ env?: Record<string, string>, stdio?: any }} [options]
 */
export function startGateway(args, { env, stdio = 'pipe' } = {}) {
  return spawn(process.execPath, [PROGRAM, ...args], {
    env: { ...process.env, CHROME_PATH: CHROMIUM, ...env },
    stdio,
  });
}

/**
 * @param {string[]} args
 * @param {{ env?: Record<string, string>, input?: string }} [options]
 * @returns {Promise<{ code: number | null, stdout: string, stderr: string }>}
 */
export async function runGateway(args, { input, ...options } = {}) {
  const child = startGateway(args, options);
  const [stdout, stderr] = [child.stdout, child.stderr].map(textOf);
  child.stdin.end(input);
  const [code] = await once(child, 'close');
  return { code, stdout: await stdout, stderr: await stderr };
}

/** @param {import('node:stream').Readable} stream */
async function textOf(stream) {
  stream.setEncoding('utf8');
  let text = '';
  for await (const chunk of stream) text += chunk;
  return text;
}

/**
 * The first line of a stream that matches; the stream is read on, so that whoever writes it never waits.
 * @param {import('node:stream').Readable} stream
 * @param {RegExp} pattern
 * @returns {Promise<string>}
 */
export function lineMatching(stream, pattern) {
  return new Promise((resolve, reject) => {
    let text = '';
    stream.setEncoding('utf8');
    stream.on('data', (chunk) => {
      text += chunk;
      const line = text
        .split('\n')
        .slice(0, -1)
        .find((each) => pattern.test(each));
      if (line !== undefined) resolve(line);
    });
    stream.on('end', () => reject(new Error(`no line ${pattern} in:\n${text}`)));
  });
}

/**
 * What is said, asked for with ever more seconds for the page until it matches: however slow the machine is, some limit lets the
 * page load.
 * @param {RegExp} pattern
 * @param {(seconds: string) => Promise<string>} said
 * @param {number} [first] seconds that are mostly enough
 */
export async function withTimeFor(pattern, said, first = 1) {
  for (let seconds = first; ; seconds *= 3) {
    const text = await said(`${seconds}`);
    if (pattern.test(text) || seconds > 200) return text;
  }
}
