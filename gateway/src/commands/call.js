/** `call`: calls a capability once, and prints what becomes of it. */
import { hasStopped } from '../app.js';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { EXIT, usageError } from '../errors.js';
import { appOf, log, seconds } from '../options.js';
import { toPlain } from '../plain.js';
import { askAtTerminal, progressView } from '../terminal.js';
import { cleanText, lineOf } from '../texts.js';

/** Characters of a failure's message that a terminal shows. */
const MAX_MESSAGE = 2000;

/** @param {string} [argument] JSON, `@` and a file's name, or `-` for stdin */
async function readParams(argument = '{}') {
  let json = argument;
  if (argument === '-') json = await text(process.stdin);
  else if (argument.startsWith('@')) {
    json = await readFile(argument.slice(1), 'utf8').catch((error) => {
      throw usageError(`${argument.slice(1)} cannot be read: ${error.message}`);
    });
  }
  try {
    return JSON.parse(json);
  } catch (error) {
    throw usageError(`The params are no JSON: ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * @param {[string, string, string?]} positionals
 * @param {any} values
 * @param {{ version: string }} context
 */
export async function execute([address, capability, argument], values, context) {
  const timeout = seconds(values.timeout, 'timeout');
  const params = await readParams(argument);
  const app = appOf(address, values, context);
  const stop = new AbortController();
  const view = progressView(process.stderr);
  const interrupt = () => {
    if (stop.signal.aborted) {
      app.kill();
      process.exit(EXIT.CANCELLED);
    }
    view.end();
    log('cancelling; once more leaves at once');
    stop.abort('the user pressed Ctrl-C');
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  try {
    // Whoever cannot be reached is another matter than a call that failed.
    await app.open();
    const response = await app.call(capability, params, {
      signal: stop.signal,
      timeout,
      onProgress: view.show,
      ...(process.stdin.isTTY && { ask: askAtTerminal }),
    });
    view.end();
    return await print(response, values, stop.signal.aborted);
  } finally {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
    await app.close();
  }
}

/**
 * @param {import('../app.js').Response} response
 * @param {{ json?: boolean, out?: string }} values
 * @param {boolean} interrupted
 * @returns {Promise<number>} the exit code
 */
async function print(response, values, interrupted) {
  /** @type {import('../plain.js').Bytes[]} */
  const found = [];
  const plain = await toPlain(response, (bytes, rest) => {
    found.push(bytes);
    const size = bytes.bytes.length;
    return {
      ...rest,
      mimeType: bytes.mimeType,
      size,
      ...(values.json && {
        content: Buffer.from(bytes.bytes).toString('base64'),
        encoding: 'base64',
      }),
    };
  });
  const { success, cancelled, error, data } = plain;
  if (values.json) process.stdout.write(`${JSON.stringify(plain)}\n`);
  if (success) {
    if (interrupted) log('the app had finished before the cancel came');
    if (values.out) await save(found, values.out);
    else if (found.length && !values.json) log('the result holds bytes: --out PATH saves them');
    if (!values.json) process.stdout.write(`${JSON.stringify(data, undefined, 2)}\n`);
    return EXIT.OK;
  }
  const { code = 'OPERATION_FAILED', message, retryable } = error ?? {};
  const why = cleanText(message, MAX_MESSAGE);
  if (code === 'TIMEOUT') {
    log(`${lineOf(code)}: ${why}`);
    return EXIT.TIMEOUT;
  }
  if (cancelled) {
    if (!hasStopped(plain)) log(`cancelled (${why}); a page's tools do not tell whether they stop`);
    else log(interrupted ? `the app answered: cancelled (${why})` : `the app cancelled: ${why}`);
    return interrupted ? EXIT.CANCELLED : EXIT.FAILED;
  }
  log(`${lineOf(code)}: ${why}${retryable === true ? ' (trying again may help)' : ''}`);
  return EXIT.FAILED;
}

/**
 * @param {import('../plain.js').Bytes[]} found
 * @param {string} out a file, or a folder, where the app's names are taken
 */
async function save(found, out) {
  if (!found.length) return log('the result holds no bytes: nothing was saved');
  const isFolder = await stat(out).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (!isFolder && found.length > 1) {
    throw usageError(`The result has ${found.length} parts of bytes: name a folder with --out`);
  }
  for (const [at, { bytes, filename }] of found.entries()) {
    // The app names a file, never a folder.
    const name = lineOf(basename(filename ?? '').replaceAll('\\', '_'), 100) || `result-${at + 1}`;
    const path = isFolder ? join(out, /^\.+$/.test(name) ? `result-${at + 1}` : name) : out;
    await writeFile(path, bytes);
    log(`saved ${path} (${bytes.length} bytes)`);
  }
}
