/** Shows a call at a terminal, and asks the app's questions there. */
import { createInterface } from 'node:readline/promises';
import { DECLINED } from './questions.js';
import { lineOf } from './texts.js';

const BAR = 24;
/** Options of a choice that are shown. */
const MAX_OPTIONS = 50;

/**
 * Progress as a bar that is redrawn, or line by line if that is impossible.
 * @param {{ write: (text: string) => unknown, isTTY?: boolean, columns?: number }} output
 */
export function progressView(output) {
  let last = '';
  let drawn = false;
  return {
    /** @type {import('./app.js').OnProgress} */
    show({ progress, total, percentage, stage, status }) {
      const share = [percentage, (100 * progress) / (total ?? NaN)].find(Number.isFinite);
      const words = [stage, status].map((word) => lineOf(word, 60)).filter(Boolean);
      const percent = share === undefined ? '' : `${String(Math.round(share)).padStart(3)} %`;
      const text = [percent || lineOf(String(progress)), ...words].join('  ');
      if (text === last) return;
      last = text;
      if (!output.isTTY) return void output.write(`${text.trim()}\n`);
      const filled = Math.round((BAR * Math.min(100, Math.max(0, share ?? 0))) / 100);
      const bar = `${'█'.repeat(filled)}${'·'.repeat(BAR - filled)} ${text}`;
      output.write(`\r\x1b[2K${bar.slice(0, (output.columns ?? 80) - 1)}`);
      drawn = true;
    },
    /** Leaves the bar, so that further output begins a new line. */
    end() {
      if (drawn) output.write('\n');
      drawn = false;
    },
  };
}

/**
 * The answer of the person at the terminal, as the protocol's response.
 * @param {import('./app.js').Question} question
 * @param {AbortSignal} signal
 */
export async function askAtTerminal({ method, params }, signal) {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // Ctrl-C goes to the line reader, and means the call.
  lines.on('SIGINT', () => process.emit('SIGINT'));
  const message = lineOf(params?.message ?? params?.prompt, 500) || 'The app asks';
  try {
    if (method === 'elicitation/confirm') {
      const line = await lines.question(`${message} [y/N] `, { signal });
      return /^y(es)?$/i.test(line.trim())
        ? { success: true, data: { confirmed: true } }
        : DECLINED;
    }
    if (method === 'elicitation/select' && Array.isArray(params?.options)) {
      const options = params.options.slice(0, MAX_OPTIONS);
      const rows = options.map(
        (/** @type {any} */ option, /** @type {number} */ at) =>
          `  ${at + 1}  ${lineOf(`${option?.label ?? option?.value ?? option}`)}\n`,
      );
      const line = await lines.question(`${message}\n${rows.join('')}Number: `, { signal });
      const chosen = options[Number(line) - 1];
      if (chosen === undefined) return DECLINED;
      return { success: true, data: { selected: chosen?.value ?? chosen } };
    }
    if (method === 'elicitation/input' || method === 'elicitation/preference') {
      const line = await lines.question(`${message}: `, { signal });
      return { success: true, data: { value: line || params?.default } };
    }
    const error = { code: 'NOT_SUPPORTED', message: `${lineOf(method)} needs another client` };
    return { success: false, error: { ...error, retryable: false } };
  } finally {
    lines.close();
  }
}
