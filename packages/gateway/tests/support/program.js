/** The program itself, as a process of its own. */
import { once } from 'node:events';
import { after } from 'node:test';
import { spawnGateway } from './spawn-gateway.js';

export { PROGRAM } from './spawn-gateway.js';

/**
 * What was started: a test that fails may leave it running, and its file would wait for that.
 * @type {import('node:child_process').ChildProcess[]}
 */
const started = [];
after(() => started.forEach((child) => child.kill()));

/** @type {typeof spawnGateway} */
export function startGateway(args, options) {
  const child = spawnGateway(args, options);
  started.push(child);
  return child;
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
 * The first line of a stream that matches; the stream is read on, so that whoever writes it never
 * waits.
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
 * What is said, asked for with ever more seconds for the page until it matches: however slow the
 * machine is, some limit lets the page load.
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
