// The demo as a person uses it: run, watch, cancel, run again; and the PDF is one.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { PDFDocument } from 'pdf-lib';
import { startServer } from '../../demo/server.js';
import { launch } from '../support/browser.js';

let server, browser, page;
const problems = [];
before(async () => {
  [server, browser] = await Promise.all([startServer(), launch()]);
  page = await browser.newPage({ viewport: { width: 1100, height: 900 } });
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(server.hostUrl);
  await page.locator('#export-pdf .run:enabled').waitFor();
});
after(async () => {
  await browser.close();
  server.close();
});

const state = (id, wanted) => page.locator(`#${id}[data-state="${wanted}"]`).waitFor();

test('a PDF is cancelled under way, and made whole the next time, in the same session', async () => {
  const card = page.locator('#export-pdf');
  await card.locator('.run').click();
  await page.waitForFunction(() => document.querySelector('#export-pdf progress').value > 5);
  await card.locator('.cancel').click();
  await state('export-pdf', 'cancelled');
  assert.match(await card.locator('.status').textContent(), /CANCELLED: the user pressed Cancel/);
  await card.locator('.run').click();
  await state('export-pdf', 'completed');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    card.locator('.result a').click(),
  ]);
  const pdf = await PDFDocument.load(await readFile(await download.path()));
  assert.ok(pdf.getPageCount() >= 300, `${pdf.getPageCount()} pages`);
});

test('an operation runs out of time while another completes', async () => {
  await page.locator('#text-summarise .timeout').fill('1');
  await page.locator('#image-blur .run').click();
  await page.locator('#text-summarise .run').click();
  await state('text-summarise', 'timeout');
  await state('image-blur', 'completed');
  await page.locator('#image-blur img').waitFor();
  if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT });
});

test('the page has no errors', () => assert.deepEqual(problems, []));
