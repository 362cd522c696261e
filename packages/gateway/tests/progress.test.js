// Progress: it rises, is bounded, and shows that a silent call lives.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { progressSender } from '../src/progress.js';
import { progressView } from '../src/terminal.js';

test('progress rises, however the app reports it, and 100 % is the result itself', async () => {
  const sent = [];
  const { report, stop } = progressSender('t', async ({ progress }) => void sent.push(progress));
  for (const progress of [0, 5, 5, 3, NaN, 7]) report({ progress, total: 10 });
  report({ progress: 2, total: 10, status: 'again' });
  report({ progress: 10, total: 10 });
  report({ percentage: 90 });
  stop();
  report({ progress: 99, total: 100 });
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(sent, [0, 5, 7, 7.001, 90]);
});

test('reports at once arrive one by one; of more than a client reads, the last arrives', async () => {
  const sent = [];
  const { report, stop } = progressSender('t', async ({ progress }) => void sent.push(progress));
  for (let progress = 0; progress < 100; progress++) report({ progress });
  while (sent.length < 100) await new Promise((resolve) => setImmediate(resolve));
  for (let progress = 100; progress < 5000; progress++) report({ progress });
  stop();
  while (sent.at(-1) !== 4999) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    sent.slice(0, 100),
    Array.from({ length: 100 }, (_, i) => i),
  );
  assert.ok(sent.length < 400, `${sent.length}`);
});

test('a silent call sends rising progress each 20 s, and none after its end', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const sent = [];
  const { report, stop } = progressSender('t', async (params) => void sent.push(params));
  t.mock.timers.tick(19_999);
  assert.deepEqual(sent, []);
  t.mock.timers.tick(1);
  report({ progress: 4, total: 10, status: 'reading' });
  for (const ms of [19_999, 1]) t.mock.timers.tick(ms);
  stop();
  t.mock.timers.tick(60_000);
  await new Promise((resolve) => setImmediate(resolve));
  const last = { progressToken: 't', total: 10, message: 'reading' };
  assert.deepEqual(sent, [
    { progressToken: 't', progress: 0 },
    { ...last, progress: 4 },
    { ...last, progress: 4.001 },
  ]);
});

test('progress for a client that does not read is bounded, and the last report arrives', async () => {
  const sent = [];
  let read;
  const { report, drain, stop } = progressSender('t', async ({ progress }) => {
    sent.push(progress);
    await new Promise((resolve) => (read = resolve));
  });
  for (let progress = 0; progress < 100_000; progress++) report({ progress, total: 200_000 });
  assert.deepEqual(sent, [0]);
  stop();
  const drained = drain();
  while (sent.at(-1) !== 99_999) {
    read();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(sent.length < 300, `${sent.length}`);
  read();
  await drained;
});

test('progress is a bar on a terminal, and lines elsewhere', () => {
  const shown = (output) => {
    let written = '';
    const view = progressView({ ...output, write: (text) => (written += text) });
    view.show({ progress: 1, total: 4, stage: 'reading\u001b[2J' });
    view.show({ progress: 1, total: 4, stage: 'reading\u001b[2J' });
    view.show({ percentage: 50 });
    view.end();
    return written;
  };
  const [quarter, half] = [6, 12].map((filled) => '█'.repeat(filled) + '·'.repeat(24 - filled));
  const [over, clear] = ['\r', '\u001b[2K'];
  assert.equal(
    shown({ isTTY: true, columns: 80 }),
    `${over}${clear}${quarter}  25 %  reading[2J${over}${clear}${half}  50 %\n`,
  );
  assert.equal(shown({}), '25 %  reading[2J\n50 %\n');
});
