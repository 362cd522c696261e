/**
 * Three operations at once, without a browser: one is cancelled, one runs out of time, one
 * finishes.
 */
import { connect, expose } from 'abp-bridge';
import { capabilities } from './operations/index.js';
import { sampleMarkdown, sampleText } from './sample.js';

/**
 * @param {(line: string) => void} print
 * @returns {Promise<boolean>} whether each ended as expected
 */
export async function runHeadless(print) {
  const { port1, port2 } = new MessageChannel();
  const app = expose(
    { app: { id: 'demo.app', name: 'Demo', version: '1' }, capabilities },
    { port: port2 },
  );
  const client = await connect(port1, { agent: { name: 'demo', version: '1' } });
  const start = performance.now();
  /** @type {{ name: string, from: number, to: number, outcome: string }[]} */
  const rows = [];
  const at = () => Math.round(performance.now() - start);
  const say = (/** @type {string} */ name, /** @type {string} */ what) =>
    print(`${String(at()).padStart(6)} ms  ${name.padEnd(15)} ${what}`);

  /**
   * @param {string} name
   * @param {object} params
   * @param {import('abp-bridge').CallOptions} [options]
   * @param {(percentage: number) => void} [onProgress]
   */
  async function run(name, params, options = {}, onProgress = undefined) {
    const row = { name, from: at(), to: 0, outcome: '' };
    rows.push(row);
    say(name, 'called');
    let last = -25;
    const response = await client.call(name, params, {
      ...options,
      onProgress({ percentage = 0, stage = '' }) {
        if (percentage - last >= 25) {
          last = percentage;
          say(name, `${percentage.toFixed(0)} % ${stage}`);
        }
        onProgress?.(percentage);
      },
    });
    row.to = at();
    const { error, metadata } = response;
    row.outcome = error ? `${error.code}, its work: ${metadata?.outcome}` : 'completed';
    say(name, error ? `${error.code}: ${error.message}` : 'completed');
    return response;
  }

  const controller = new AbortController();
  const text = sampleText(120);
  const [blurred, summary, pdf] = await Promise.all([
    run('image.blur', { size: 512, radius: 8 }),
    run('text.summarise', { text }, { timeout: 250 }),
    run(
      'export.pdf',
      { markdown: sampleMarkdown(120) },
      { signal: controller.signal },
      (percentage) => {
        if (percentage < 20 || controller.signal.aborted) return;
        say('export.pdf', 'the user presses stop');
        controller.abort('the user pressed stop');
      },
    ),
  ]);
  // The same session goes on.
  const after = await run('export.pdf', { markdown: sampleMarkdown(2) });

  const end = at();
  print('');
  for (const { name, from, to, outcome } of rows) {
    const cell = (/** @type {number} */ ms) => Math.round((ms / end) * 50);
    const bar = '·'.repeat(cell(from)) + '█'.repeat(Math.max(1, cell(to) - cell(from)));
    print(`${name.padEnd(15)} ${bar.padEnd(51, '·')} ${outcome}`);
  }
  client.close();
  app.close();
  return (
    blurred.success === true &&
    summary.error?.code === 'TIMEOUT' &&
    pdf.error?.code === 'CANCELLED' &&
    pdf.metadata?.outcome === 'stopped' &&
    after.success === true
  );
}
