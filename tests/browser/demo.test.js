// The demo as a person uses it: run, watch, cancel, answer, reload the app; by mouse, by keyboard,
// and by what a screen reader is told.
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
  page.on('pageerror', (error) => problems.push(error.message));
  await open();
});
after(async () => {
  await browser.close();
  server.close();
});

/** Opens the page, with all that it folds away. */
async function open() {
  await page.goto(server.hostUrl);
  for (const more of await page.locator('summary').all()) await more.click();
}
const button = (name) => page.getByRole('button', { name, exact: true });
/** The box of an operation, by the name that people see. */
const boxOf = (title) =>
  page.locator('.call').filter({ has: page.locator('.title', { hasText: title }) });
/** Runs an operation, and resolves with its box once it has begun. */
async function run(title) {
  const box = boxOf(title);
  await button(`Run ${title}`).click();
  return box;
}
const focused = () => page.evaluate(() => document.activeElement.textContent);
/** A frame and a button are both in the viewport, whole, and nothing covers them. */
async function assertInSight(frame, name) {
  for (const one of [page.locator(frame), button(name)]) {
    const seen = await one.evaluate((element) => {
      const { left, top, right, bottom } = element.getBoundingClientRect();
      const corners = [
        [left + 4, top + 4],
        [right - 4, bottom - 4],
      ];
      return corners.map(([x, y]) => element.contains(document.elementFromPoint(x, y)));
    });
    assert.deepEqual(seen, [true, true], `${frame} with ${name}: ${one}`);
  }
}
const ended = (box, state) => box.and(page.locator(`[data-state="${state}"]`)).waitFor();
/** What the operation's box says of its call. */
const statusOf = (box) => box.locator('.status').textContent();
/**
 * Runs an operation, and stops it by its button as soon as it is under way: at once, however busy
 * the machine is.
 */
async function runAndStop(title) {
  const box = boxOf(title);
  await box.evaluate((one) => {
    one.querySelector('.run').click();
    const timer = setInterval(() => {
      if (one.querySelector('progress').value <= 1) return;
      clearInterval(timer);
      one.querySelector('.stop').click();
    }, 5);
  });
  return box;
}

test('a PDF is stopped under way, and made whole the next time, in the same session', async () => {
  const box = await runAndStop('Export a PDF');
  await ended(box, 'cancelled');
  const status = await statusOf(box);
  assert.match(status, /^Stopped\. The app confirmed it, and its work ended \d.*, at \d+ %\.$/);
  // Both sides show how far the work has come.
  await box.getByRole('progressbar').waitFor();
  await page.frameLocator('#app').locator('[data-state="stopped"] progress').first().waitFor();
  await run('Export a PDF');
  await ended(box, 'completed');
  await box.getByRole('img', { name: 'The first page of the PDF' }).waitFor();
  assert.equal(await box.getByText('Example').count(), 0);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    box.getByRole('link', { name: 'Save it' }).click(),
  ]);
  const pdf = await PDFDocument.load(await readFile(await download.path()));
  assert.ok(pdf.getPageCount() >= 250, `${pdf.getPageCount()} pages`);
});

test('several calls at once: one completes, one runs out of time, one that never pauses is stopped', async () => {
  const route = await run('Plan a delivery round');
  await page.getByLabel('Time limit').selectOption('0.2 s');
  const story = await run('Tell a story');
  await page.getByLabel('Time limit').selectOption('none');
  const image = await run('Blur a picture');
  await ended(image, 'completed');
  await image.getByRole('img', { name: 'Blurred hills' }).waitFor();
  await image.getByRole('img', { name: 'Hills in the evening' }).waitFor();
  await ended(story, 'timeout');
  await button('Stop all').click();
  await route.and(page.locator(':not([data-state="running"])')).waitFor();
  assert.match(await route.getAttribute('data-state'), /^(cancelled|completed)$/);
});

test('a call that never pauses is stopped, and one of a plain app is, too', async () => {
  const route = await runAndStop('Plan a delivery round');
  await ended(route, 'cancelled');
  const timer = await runAndStop('Set a timer');
  await ended(timer, 'cancelled');
  assert.match(await statusOf(timer), /^Stopped\. So says the app\. Without abp-bridge it cannot/);
  assert.equal(await page.frameLocator('#plain').locator('#left').textContent(), 'Stopped');
});

test('a stream is shown while it arrives, and what has come stays when it is stopped', async () => {
  const jobs = page.frameLocator('#app').locator('#running > li');
  const story = await runAndStop('Tell a story');
  await ended(story, 'cancelled');
  assert.match(await story.locator('.result').textContent(), /^The keeper's daughter/);
  // It was never done: only its reader says when it is.
  await jobs.getByText('Telling a story: stopped (the user pressed Stop)').waitFor();
});

test('a question in the midst of a call is answered by keyboard, or closed with its call', async () => {
  const published = await run('Publish a report');
  const dialog = page.getByRole('dialog', { name: 'The app asks' });
  await dialog.waitFor();
  assert.match(await dialog.textContent(), /Publish “A year at Skerry Point”/);
  // A key that was meant for something else answers nothing.
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await ended(published, 'completed');
  assert.equal(await published.locator('.result').textContent(), 'You agreed: published.');
  const declined = await run('Publish a report');
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await ended(declined, 'completed');
  assert.equal(await declined.locator('.result').textContent(), 'You declined: not published.');
  // The focus is back where it was.
  assert.equal(await focused(), 'RunPublish a report');
});

test('a question hides no Stop: by mouse and by keyboard its call is stopped, and the question goes', async () => {
  const dialog = page.getByRole('dialog', { name: 'The app asks' });
  const stopped = async (box) => {
    await ended(box, 'cancelled');
    assert.match(await statusOf(box), /^Stopped\. The app confirmed it/);
    assert.equal(await dialog.count(), 0);
  };
  for (const width of [1200, 390]) {
    await page.setViewportSize({ width, height: 844 });
    for (const stop of ['Stop Publish a report', 'Stop all']) {
      const box = await run('Publish a report');
      await dialog.waitFor();
      await assertInSight('#app', stop);
      // As a finger does: without first being scrolled to.
      const { x, y } = await button(stop).boundingBox();
      await page.mouse.click(x + 5, y + 5);
      await stopped(box);
    }
  }
  await page.setViewportSize({ width: 1200, height: 1000 });
  await button('Run Publish a report').focus();
  await page.keyboard.press('Enter');
  await dialog.waitFor();
  while ((await focused()) !== 'StopPublish a report') await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await stopped(boxOf('Publish a report'));
});

test('on a phone, the app is in sight together with Stop, while a call runs and when it is stopped', async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  for (const title of ['Export a PDF', 'Plan a delivery round', 'Tell a story']) {
    const box = await run(title);
    await box.and(page.locator('[data-state="running"]')).waitFor();
    await assertInSight('#app', `Stop ${title}`);
    await button(`Stop ${title}`).click();
    await ended(box, 'cancelled');
    await assertInSight('#app', `Run ${title}`);
    await assertInSight('#app', 'Stop all');
  }
  const timer = await run('Set a timer');
  await assertInSight('#plain', 'Stop Set a timer');
  await button('Stop Set a timer').click();
  await ended(timer, 'cancelled');
  await assertInSight('#plain', 'Run Set a timer');
  await page.setViewportSize({ width: 1200, height: 1000 });
});

test('what the operations make is shown before anything has run, as an example', async () => {
  const other = await browser.newPage();
  await other.goto(server.hostUrl);
  const example = other.getByRole('figure').filter({ hasText: 'Example' });
  for (const name of ['The first page of the PDF', 'Blurred hills', 'A round of 40 stops on a map'])
    await example.getByRole('img', { name }).waitFor();
  assert.equal(await other.frameLocator('#app').locator('#running > li').count(), 0);
  await other.close();
});

test('by keyboard, the focus stays on the button that runs, stops, and runs again', async () => {
  await button('Run Plan a delivery round').focus();
  await page.keyboard.press('Enter');
  assert.equal(await focused(), 'StopPlan a delivery round');
  await page.keyboard.press('Enter');
  await ended(boxOf('Plan a delivery round'), 'cancelled');
  assert.equal(await focused(), 'RunPlan a delivery round');
});

test('what happens to calls is announced, and their progress is not', async () => {
  const box = await run('Set a timer');
  const announced = (text) =>
    page.waitForFunction(
      (text) => document.querySelector('#announcer').textContent.includes(text),
      text,
    );
  await announced('Set a timer started');
  assert.equal(await page.locator('[role="status"], [aria-live]').count(), 1);
  await button('Stop all').click();
  await ended(box, 'cancelled');
  await announced('Set a timer: Stopped.');
});

test('an app that is reloaded or goes away fails its calls, and is connected to again', async () => {
  for (const [what, back] of [['Reload it'], ['Navigate it away', 'Bring it back']]) {
    const box = await run('Plan a delivery round');
    await button(what).click();
    await ended(box, 'disconnected');
    assert.match(await statusOf(box), /^The app went away during the call/);
    if (back) await button(back).click();
    await page.locator('[data-app="app"][data-state="connected"]').waitFor();
    await ended(await runAndStop('Tell a story'), 'cancelled');
  }
  // The app greets hosts of MCP Apps, too: the inspector says what that is.
  const inspector = page.locator('abp-inspector');
  await inspector.getByText('ui/initialize: another protocol (JSON-RPC)').first().waitFor();
  assert.equal(await inspector.getByText('dropped: malformed').count(), 0);
});

test('a frozen app does not answer, and its call ends all the same', async () => {
  // The stop follows at once, however busy the machine is: it is to find the app frozen.
  await button('Run Freeze it for 8 s').evaluate((one) => {
    one.click();
    setTimeout(() => one.click());
  });
  const box = boxOf('Freeze it for 8 s');
  // Who is first: the agent's grace period, or the app, which learns of the cancel when it wakes.
  await ended(box, 'cancelled');
  const ENDED = /^Stopped\. (But the app has not answered|But too late|The app confirmed)/;
  assert.match(await statusOf(box), ENDED);
  // What nobody knew is known when the app is back.
  await box.getByText(/answered since: the work was done|But too late|The app confirmed/).waitFor();
});

test('opened as localhost, the page goes where its frames are of another site', async () => {
  const other = await browser.newPage();
  await other.goto(`${server.hostUrl.replace('127.0.0.1', 'localhost')}/agents?one`);
  assert.equal(other.url(), `${server.hostUrl}/agents?one`);
  await other.close();
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
    for (const name of AGENTS) await done(`Counting up for ${name}: working`);
    const reason = 'the user pressed Cancel';
    const TOLD = {
      'MCP Apps': ['the user pressed Cancel. Outcome: unknown', reason],
      WebMCP: [
        'CANCELLED: the user pressed Cancel. Outcome: unknown',
        'The agent cancelled the call (WebMCP)',
      ],
      ABP: ['CANCELLED: the user pressed Cancel. Outcome: stopped', reason],
    };
    let running = AGENTS.length;
    for (const [name, [words, why]] of Object.entries(TOLD)) {
      await press(`Cancel by ${name}`);
      assert.equal(await told(name), `Told: ${words}`);
      await done(`Counting up for ${name}: stopped (${why})`);
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

  test('it is used by keyboard alone, and where the browser has no WebMCP, says so and has window.abp', async () => {
    const { page, box, done } = await open(browser);
    await box('window.abp').getByText('WebMCP, which this browser does not have').waitFor();
    assert.equal(await box('WebMCP').count(), 0);
    const [alone] = await Promise.all([
      page.waitForEvent('popup'),
      box('window.abp').getByRole('link').press('Enter'),
    ]);
    const byScript = (verb) => alone.getByRole('button', { name: `${verb} by window.abp` });
    await byScript('Call').press('Enter');
    await alone.getByText('Counting up for window.abp: working').waitFor();
    await byScript('Cancel').press('Enter');
    await alone.getByText('Told: CANCELLED: the user pressed Cancel. Outcome: stopped').waitFor();
    await alone
      .getByText('Counting up for window.abp: stopped (the user pressed Cancel)')
      .waitFor();
    for (const colorScheme of ['light', 'dark']) await looksRight(alone, colorScheme);
    await alone.close();
    await box('ABP').getByRole('button').waitFor();
    await box('MCP Apps').getByRole('button').waitFor();
    await page.getByLabel('Count to').fill('1000000');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await done('Counting up for ABP: working');
    // The focus has stayed on the button, which cancels now.
    await page.keyboard.press('Enter');
    await done('Counting up for ABP: stopped (the user pressed Cancel)');
    for (const colorScheme of ['light', 'dark']) await looksRight(page, colorScheme);
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
async function looksRight(page, colorScheme) {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await page.setViewportSize({ width: 390, height: 844 });
  assert.deepEqual(await violations(page), []);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 390, `the page is ${width} pixels wide`);
}

for (const colorScheme of ['light', 'dark']) {
  test(`axe finds nothing, and nothing is cut off on a phone (${colorScheme})`, async () => {
    await button('Clear').click(); // thousands of messages would only cost time
    await looksRight(page, colorScheme);
  });
}

// The pictures in README.md: SCREENSHOTS=docs node --test tests/browser/demo.test.js
for (const colorScheme of ['light', 'dark']) {
  test(`a screen of the demo at work (${colorScheme})`, async () => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.reload();
    await page.getByText('Example').nth(2).waitFor();
    await run('Tell a story');
    await ended(await runAndStop('Export a PDF'), 'cancelled');
    const image = await run('Blur a picture');
    await ended(image, 'completed');
    await image.getByRole('img', { name: 'Blurred hills' }).waitFor();
    await run('Plan a delivery round');
    await page.evaluate(() => scrollTo(0, 0));
    const folder = process.env.SCREENSHOTS;
    if (folder) await page.screenshot({ path: `${folder}/demo-${colorScheme}.png` });
    await button('Stop all').click();
  });
}

test('the page has no errors', () => assert.deepEqual(problems, []));
