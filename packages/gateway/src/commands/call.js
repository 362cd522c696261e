/** `call`: calls a capability once, and prints the result. */
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { App, hasStopped } from '../app.js';
import { EXIT, log, seconds, usageError } from '../errors.js';
import { requireWritable, saveAll } from '../files.js';
import { sentenceOf } from '../outcomes.js';
import { toPlain } from '../plain.js';
import { signalled } from '../signals.js';
import { askAtTerminal, progressView } from '../terminal.js';
import { cleanText, jsonText, lineOf } from '../texts.js';
import { unlessAborted } from '../waiting.js';

/** Characters of an error message on a terminal. */
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
    throw usageError(`The params are not JSON: ${/** @type {Error} */ (error).message}`);
  }
}

/** @type {import('../commands.js').Execute} */
export async function execute([address, capability, argument], values, context) {
  const timeout = seconds(values.timeout, 'timeout');
  const params = await readParams(argument);
  if (values.out) await requireWritable(values.out);
  const app = new App(address, values, context);
  const stop = new AbortController();
  const { signal } = stop;
  const view = progressView(process.stderr);
  void signalled(EXIT.CANCELLED).then((name) => {
    view.end();
    log('cancelling; press Ctrl-C again to leave at once');
    stop.abort(name === 'SIGINT' ? 'the user pressed Ctrl-C' : `the program was ended by ${name}`);
  });
  try {
    // An unreachable app has another exit code than a failed call.
    await unlessAborted(app.open(), signal).catch((error) => {
      if (!signal.aborted) throw error;
    });
    if (signal.aborted) {
      log(`cancelled before the app was called: ${signal.reason}`);
      return EXIT.CANCELLED;
    }
    let streamed = false;
    const response = await app.call(capability, params, {
      signal,
      timeout,
      onProgress: view.show,
      // With --json they are in the result.
      onChunk(text) {
        if (values.json) return;
        streamed = true;
        view.end();
        process.stdout.write(`${text}\n`);
      },
      ...(process.stdin.isTTY && { ask: askAtTerminal }),
    });
    view.end();
    return await print(response, values, signal.aborted, streamed);
  } finally {
    await app.close();
  }
}

/**
 * @param {import('../app.js').Result} response
 * @param {import('../commands.js').Values} values
 * @param {boolean} interrupted
 * @param {boolean} streamed whether chunks were printed on arrival
 * @returns {Promise<number>} the exit code
 */
async function print(response, values, interrupted, streamed) {
  /** @type {import('../plain.js').Bytes[]} */
  const found = [];
  const plain = await toPlain(response, (each, rest) => {
    found.push(each);
    const { bytes, mimeType } = each;
    const description = { ...rest, mimeType, size: bytes.length };
    if (!values.json) return description;
    return { ...description, content: Buffer.from(bytes).toString('base64'), encoding: 'base64' };
  });
  const { success, cancelled, error, data } = plain;
  if (values.json) process.stdout.write(`${jsonText(plain)}\n`);
  if (success) {
    if (interrupted) log('the app had finished before the cancel came');
    // The chunks were printed; they are the data only if nothing was returned.
    const isPrinted = streamed && !response.chunks;
    if (!values.json && !isPrinted) process.stdout.write(`${jsonText(data ?? null, 2)}\n`);
    if (values.out) return (await saveAll(found, values.out)) ? EXIT.OK : EXIT.UNSAVED;
    if (found.length && !values.json) log('the result has binary parts: --out PATH saves them');
    return EXIT.OK;
  }
  const { code = 'OPERATION_FAILED', message, retryable } = error ?? {};
  const why = cleanText(message, MAX_MESSAGE);
  const timedOut = code === 'TIMEOUT';
  if (!timedOut && !cancelled) {
    log(`${lineOf(code)}: ${why}${retryable === true ? ' (trying again may help)' : ''}`);
    return EXIT.FAILED;
  }
  const isKnown = timedOut || hasStopped(plain);
  if (timedOut) log(`${lineOf(code)}: ${why}`);
  else if (!interrupted) log(`the app cancelled: ${why}`);
  else log(`cancelled (${why})${isKnown ? '' : '; whether the app has stopped is not known'}`);
  const sentence = sentenceOf(plain.metadata ?? {});
  if (sentence && isKnown) log(sentence);
  return timedOut ? EXIT.TIMEOUT : interrupted ? EXIT.CANCELLED : EXIT.FAILED;
}
