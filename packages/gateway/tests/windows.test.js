// What a page does beside itself in a browser that nobody sees: windows, their dialogs, and
// downloads.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { lineMatching, runGateway, startGateway } from './support/program.js';
import { once } from 'node:events';
import { startRaw } from './support/raw-client.js';
import { startSite } from './support/site.js';

const CAPABILITIES = `{
  dialogs: async () => {
    const shown = window.open('/dialog');
    const answers = [window.open('about:blank').confirm('Delete?')];
    // A window whose script is stopped by its dialog says nothing.
    while (!shown.done) await frame();
    return answers;
  },
  many: async () => {
    const windows = Array.from({ length: 30 }, () => window.open('about:blank'));
    while (windows.filter((each) => !each.closed).length > 4) await frame();
    return 'few';
  },
  save: async () => {
    download('name,n');
    await released();
    return { saved: true };
  },
  later: () => {
    released().then(() => download('nobody asked'));
    return { saved: true };
  },
}`;
const page = `<!doctype html><script type="module">
  import { expose } from '/parts/main/index.js';
  const frame = () => new Promise(requestAnimationFrame);
  const released = async () => { while (!(await fetch('/released', { cache: 'no-store' })).ok); };
  const download = (text) => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text]));
    link.download = 'report.csv';
    link.click();
  };
  expose({ app: { id: 'windows', name: 'Windows', version: '1' }, capabilities: ${CAPABILITIES} }, { origins: [] });
</script>`;

let site, folder;
before(async () => {
  site = await startSite();
  site.extra.set('/app', { type: 'text/html', body: page });
  const dialog = `<!doctype html><script>alert('Look here'); window.done = true;</script>`;
  site.extra.set('/dialog', { type: 'text/html', body: dialog });
  folder = mkdtempSync(join(tmpdir(), 'gateway-test-'));
});
after(() => {
  site.close();
  rmSync(folder, { recursive: true, force: true });
});
/** Lets a handler that waits go on. */
const release = () => site.extra.set('/released', { type: 'text/plain', body: 'yes' });
/** A call that gives up: what hangs fails its own test. */
const args = (name, ...options) => [
  'call',
  `${site.origin}/app`,
  name,
  '--temporary',
  '--timeout',
  '100',
  ...options,
];

test('dialogs of windows that a page opens are dismissed, and its animations go on behind them', async () => {
  const { stdout, stderr, code } = await runGateway(args('dialogs'));
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), [false]);
  assert.match(stderr, /the page's alert was dismissed: Look here/);
});

test('of the windows that a page opens, few stay open', async () => {
  const { stderr, code } = await runGateway(args('many'));
  assert.equal(code, 0, stderr);
});

test('what a page downloads in a call is part of its result', async () => {
  const env = { TMPDIR: folder };
  const child = startGateway(args('save', '--out', folder), { env });
  child.stdout.resume();
  await lineMatching(child.stderr, /goes into the call's result: report\.csv/);
  release();
  assert.deepEqual(await once(child, 'close'), [0, null]);
  site.extra.delete('/released');
  // Nothing else is left of it.
  assert.deepEqual(readdirSync(folder), ['report.csv']);
  assert.equal(readFileSync(join(folder, 'report.csv'), 'utf8'), 'name,n');

  const raw = await startRaw(['mcp', `${site.origin}/app`, '--temporary']);
  for (let at = 0; at < 2; at++) {
    const id = raw.call('save');
    await raw.said(new RegExp(`(goes into the call's result[^]*){${at + 1}}`));
    release();
    const { result } = await raw.answerTo(id);
    site.extra.delete('/released');
    assert.deepEqual(result.structuredContent, { saved: true });
    const [, { resource }] = result.content;
    assert.deepEqual(
      [resource.mimeType, Buffer.from(resource.blob, 'base64').toString()],
      ['text/csv', 'name,n'],
    );
  }
  await raw.answerTo(raw.call('later'));
  release();
  await raw.said(/a download that belongs to no call was cancelled: report\.csv/);
  raw.child.stdin.end();
  assert.deepEqual(await raw.closed, [0, null]);
});
