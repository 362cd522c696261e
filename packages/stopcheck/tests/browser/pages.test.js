// Apps of ABP, and WebMCP tools, in pages of Chromium.
import assert from 'node:assert/strict';
import { copyFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { reportOf, server, shortfalls, stepsSeen } from '../support/stopcheck.js';

const BUNDLE = new URL('../../../../dist/page/abp-bridge.bundle.js', import.meta.url);
const BROWSER = ['--browser=/usr/bin/chromium', '--browser-arg=--no-sandbox'];

let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'stopcheck-pages-'));
  cpSync(server('pages'), folder, { recursive: true });
  copyFileSync(fileURLToPath(BUNDLE), join(folder, 'abp-bridge.bundle.js'));
});
after(() => rmSync(folder, { recursive: true }));

/** @param {string} press */
const check = (protocol, page, press, more) => {
  const call = ['--tool=slow', '--args', stepsSeen(more)];
  return reportOf(
    protocol,
    '--quiet=3000',
    `--press=${press}`,
    ...BROWSER,
    ...call,
    join(folder, page),
  );
};

test('an app of this library scores full, also when a call is repeated', async () => {
  const all = 'before,at-once,50%,end,twice,unknown,close,question,stream,neighbours,repeat';
  const report = await check('abp', 'abp.html', all, { asks: true });
  assert.deepEqual(shortfalls(report), []);
});

test('an app that confirms a cancel and works on is caught', async () => {
  const { texts } = await check('abp', 'liar.html', '50%');
  assert.match(texts.join(), /50%: said stopped \(answer\): it worked for/);
});

test('a WebMCP tool that heeds its signal stops; one that does not is caught', async () => {
  const honest = await check('webmcp', 'webmcp.html', '50%,neighbours');
  assert.deepEqual(shortfalls(honest), []);
  assert.equal(honest.silent, 2);
  const { texts } = await check('webmcp', 'deaf.html', '50%');
  assert.match(texts.join(), /50%: it worked to its end/);
});
