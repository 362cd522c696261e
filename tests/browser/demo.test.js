// The demo as a person uses it: run, watch, cancel, answer, reload the app; by mouse, by keyboard, and by what a screen
// reader is told.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { PDFDocument } from 'pdf-lib';
import { startServer } from '../../demo/server.js';
import { launch } from '../support/browser.js';

let server, browser, page;
const problems = [];
before(async () => {
  [server, browser] = await Promise.all([startServer(), launch()]);
  page = await browser.newPage({ viewport: { width: 1200, height: 1000 }, acceptDownloads: true });
  page.setDefaultTimeout(300_000);
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(server.hostUrl);
  await button('Run slow.count').waitFor();
  await button('Run report.publish').waitFor();
});
after(async () => {
  await browser.close();
  server.close();
});

const button = (name) => page.getByRole('button', { name, exact: true });
/** The box of a call: not what the inspector says of it. */
const boxOf = (title) =>
  page.locator('#calls > .call').filter({
    has: page.getByRole('heading', { name: title, exact: true }),
  });
let count = 0;
/** Runs an operation, and resolves with its box. */
async function run(name) {
  await button(`Run ${name}`).click();
  return boxOf(`${name} ${++count}`);
}
const ended = (box, state) => box.and(page.locator(`[data-state="${state}"]`)).waitFor();
/** Runs an operation, and cancels it by its button as soon as it is under way: at once, however busy the machine is. */
async function runAndCancel(name) {
  await button(`Run ${name}`).evaluate((one) => {
    one.click();
    const box = document.querySelector('.call');
    const timer = setInterval(() => {
      if (box.querySelector('progress').value <= 1) return;
      clearInterval(timer);
      box.querySelector('.cancel').click();
    }, 5);
  });
  return boxOf(`${name} ${++count}`);
}

test('a PDF is cancelled under way, and made whole the next time, in the same session', async () => {
  const first = await runAndCancel('export.pdf');
  await ended(first, 'cancelled');
  assert.match(
    await first.locator('.status').textContent(),
    /CANCELLED: the user pressed Cancel \(/,
  );
  const second = await run('export.pdf');
  await ended(second, 'completed');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    second.getByRole('link').click(),
  ]);
  const pdf = await PDFDocument.load(await readFile(await download.path()));
  assert.ok(pdf.getPageCount() >= 300, `${pdf.getPageCount()} pages`);
});

test('several calls at once: one completes, one runs out of time, one that never pauses is stopped', async () => {
  const primes = await run('primes.count');
  await page.getByLabel('Time limit of new calls').selectOption('0.2 s');
  const summary = await run('text.summarise');
  await page.getByLabel('Time limit of new calls').selectOption('none');
  const image = await run('image.blur');
  await ended(image, 'completed');
  await image.getByRole('img', { name: 'Blurred hills' }).waitFor();
  // A quick machine may summarise in time.
  await summary.and(page.locator(':not([data-state="running"])')).waitFor();
  assert.match(await summary.getAttribute('data-state'), /^(timeout|completed)$/);
  await button('Cancel all').click();
  await primes.and(page.locator(':not([data-state="running"])')).waitFor();
  assert.match(await primes.getAttribute('data-state'), /^(cancelled|completed)$/);
});

test('a call that never pauses is stopped, and one of a plain app is, too', async () => {
  const primes = await run('primes.count');
  await button(`Cancel primes.count ${count}`).click();
  await ended(primes, 'cancelled');
  const counts = await runAndCancel('slow.count');
  await ended(counts, 'cancelled');
  assert.equal(await page.frameLocator('#plain').locator('#count').textContent(), 'Stopped');
});

test('a stream is shown while it arrives, and what has come stays when it is cancelled', async () => {
  const story = await runAndCancel('story.tell');
  await ended(story, 'cancelled');
  assert.match(await story.locator('.result').textContent(), /^\s?Chapter 1: /);
});

test('a question in the midst of a call is answered by keyboard, or closed with its call', async () => {
  const published = await run('report.publish');
  const dialog = page.getByRole('dialog', { name: 'The app asks' });
  await dialog.waitFor();
  assert.match(await dialog.textContent(), /Publish “Quarterly report”/);
  await page.keyboard.press('Enter');
  await ended(published, 'completed');
  assert.equal(await published.locator('.result').textContent(), 'Published');
  const declined = await run('report.publish');
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await ended(declined, 'completed');
  assert.equal(await declined.locator('.result').textContent(), 'Not published');
});

test('the focus stays on the button of a call, and removes it', async () => {
  await button('Run primes.count').focus();
  await page.keyboard.press('Enter');
  count++;
  await button(`Cancel primes.count ${count}`).focus();
  await page.keyboard.press('Enter');
  await button(`Remove primes.count ${count}`).waitFor();
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  assert.equal(await focused(), `Remove primes.count ${count}`);
  await page.keyboard.press('Enter');
  assert.match(await focused(), /^Remove report.publish /);
});

test('what happens to calls is announced, and their progress is not', async () => {
  const started = `primes.count ${count + 1} started`;
  const box = await run('primes.count');
  await page.waitForFunction(
    (text) => document.querySelector('#announcer').textContent.includes(text),
    started,
  );
  assert.equal(await page.locator('[role="status"], [aria-live]').count(), 1);
  await button('Cancel all').click();
  await ended(box, 'cancelled');
});

test('an app that is reloaded or goes away fails its calls, and is connected to again', async () => {
  for (const what of ['Reload it', 'Navigate it away']) {
    const box = await run('primes.count');
    await button(what).click();
    await ended(box, 'disconnected');
    assert.match(await box.locator('.status').textContent(), /^DISCONNECTED: /);
    await page.getByText(/^Connected to Demo app/).waitFor();
    await ended(await run('text.summarise'), 'completed');
  }
});

test('a frozen app is not heard of, and its call ends all the same', async () => {
  // The cancel follows at once, however busy the machine is: it is to find the app frozen.
  await button('Freeze it for 8 s').evaluate((one) => {
    one.click();
    const cancel = document.querySelector('.call .cancel');
    setTimeout(() => cancel.click());
  });
  const box = boxOf(`app.freeze ${++count}`);
  // Who is first: the agent's grace period, or the app that hears of the cancel when it wakes.
  await ended(box, 'cancelled');
});

describe('one app, three kinds of agent', () => {
  const AGENTS = ['ABP', 'MCP Apps', 'WebMCP'];
  let withTools;
  before(async () => {
    withTools = await launch({ args: ['--enable-features=WebMCP,WebMCPTesting'] });
  });
  after(() => withTools.close());
  const open = async (within) => {
    const page = await within.newPage({ viewport: { width: 1200, height: 1000 } });
    page.setDefaultTimeout(300_000);
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(`${server.hostUrl}/agents`);
    const press = (what) => page.getByRole('button', { name: what, exact: true }).click();
    const box = (name) =>
      page.getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) });
    const ended = page.locator('[data-state="completed"], [data-state="failed"]');
    const told = async (name) => {
      await box(name).and(ended).waitFor();
      return box(name).locator('.status').textContent();
    };
    const log = page.frameLocator('#app').locator('#running > li');
    const done = (line) => log.getByText(line, { exact: true }).waitFor();
    return { page, press, box, told, log, done };
  };

  test('each calls, and cancels its own call: what was done is in the handler’s log', async () => {
    const { page, press, told, log, done } = await open(withTools);
    await page.getByLabel('Count to').fill('1000000');
    for (const name of AGENTS) await press(`Call by ${name}`);
    for (const name of AGENTS) await done(`count.up for ${name}: working`);
    const reason = 'the user pressed Cancel';
    // On a slow machine, the client's own grace period may be over before the browser has answered it.
    const TOLD = {
      'MCP Apps': [/^Told: the user pressed Cancel, and the outcome is unknown$/, reason],
      WebMCP: [
        /^Told: CANCELLED: the user pressed Cancel(, and the outcome is unknown)?$/,
        'The agent cancelled the call (WebMCP)',
      ],
      ABP: [/^Told: CANCELLED: the user pressed Cancel$/, reason],
    };
    let running = AGENTS.length;
    for (const [name, [words, why]] of Object.entries(TOLD)) {
      await press(`Cancel by ${name}`);
      assert.match(await told(name), words);
      await done(`count.up for ${name}: stopped (${why})`);
      running--;
      assert.equal(await log.getByText(/: working$/).count(), running);
    }
  });

  test('each is told the result, and a screen reader, too', async () => {
    const { page, press, told, log } = await open(withTools);
    await page.getByLabel('Count to').fill('2');
    for (const name of AGENTS) {
      await press(`Call by ${name}`);
      assert.equal(await told(name), 'Told: counted to 2');
      const [spoken] = await page.locator('#announcer').allTextContents();
      assert.equal(spoken, `${name} was told: counted to 2`);
    }
    assert.equal(await log.getByText(/: done$/).count(), AGENTS.length);
    assert.deepEqual(await violations(page), []);
  });

  test('it is used by keyboard alone, and says so where the browser has no WebMCP', async () => {
    const { page, box, done } = await open(browser);
    await box('WebMCP').getByText('WebMCP is not in this browser', { exact: true }).waitFor();
    assert.equal(await box('WebMCP').getByRole('button').count(), 0);
    await box('ABP').getByRole('button').waitFor();
    await box('MCP Apps').getByRole('button').waitFor();
    await page.getByLabel('Count to').fill('1000000');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await done('count.up for ABP: working');
    // The focus has stayed on the button, which cancels now.
    await page.keyboard.press('Enter');
    await done('count.up for ABP: stopped (the user pressed Cancel)');
    for (const colorScheme of ['light', 'dark']) await looksRight(page, 'agents', colorScheme);
  });
});

const violations = async (page) => {
  await page.evaluate(await readFile(createRequire(import.meta.url).resolve('axe-core'), 'utf8'));
  return page.evaluate(async () => {
    const found = await globalThis.axe.run(document);
    return found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
  });
};
/** On a phone, by axe and by its width. */
async function looksRight(page, name, colorScheme) {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await page.setViewportSize({ width: 390, height: 844 });
  assert.deepEqual(await violations(page), []);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 390, `the page is ${width} pixels wide`);
  const folder = process.env.SCREENSHOTS;
  const path = `${folder}/${name}-${colorScheme}.png`;
  if (folder) await page.screenshot({ path, fullPage: true });
}

for (const colorScheme of ['light', 'dark']) {
  test(`axe finds nothing, and nothing is cut off on a phone (${colorScheme})`, async () => {
    await button('Clear').click(); // thousands of messages would only cost time
    await looksRight(page, 'demo', colorScheme);
  });
}

test('the page has no errors', () => assert.deepEqual(problems, []));
