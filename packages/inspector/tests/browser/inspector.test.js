// <abp-inspector> as a person uses it: by mouse, by keyboard, by a screen reader (axe), dark and
// light, on a phone.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sites } from '../../../../tests/support/browser.js';

const axe = await readFile(
  new URL('../../../../node_modules/axe-core/axe.min.js', import.meta.url),
  'utf8',
);
const recording = new URL('../../../../tests/core/recordings/session.jsonl', import.meta.url);

let site, page;
const problems = [];
before(async () => {
  site = await sites();
  page = await site.browser.newPage({ viewport: { width: 900, height: 700 } });
  page.on('pageerror', (error) => problems.push(error.message));
});
after(() => site.close());
beforeEach(async () => {
  problems.length = 0;
  await page.setViewportSize({ width: 900, height: 700 });
  await page.goto(`${site.hostOrigin}/packages/inspector/tests/browser/pages/inspector.html`);
  await page.waitForFunction(() => window.isReady);
});

const open = () =>
  page.evaluate(([src, origin]) => window.open_(src, origin), [site.appUrl({}), site.appOrigin]);
const openRecording = async () => {
  const text = await readFile(recording, 'utf8');
  await page.evaluate((text) => window.inspector.open(text), text);
};
const inspector = () => page.locator('abp-inspector');
const tab = (name) => inspector().getByRole('tab', { name });
/** Waits for a row of the chart. */
const row = (text) => inspector().locator('summary', { hasText: text }).last();
/** Waits for a row of the table of calls. */
const call = (...texts) =>
  texts.reduce((rows, hasText) => rows.filter({ hasText }), inspector().locator('tbody tr'));
/** What has the focus within the inspector. */
const focused = () =>
  page.evaluate(() => window.inspector.shadowRoot.activeElement?.textContent ?? '');

describe('live', () => {
  test('messages are shown as they come, and open to their content', async () => {
    await open();
    await page.evaluate(() => window.client.call('echo', { title: 'Report' }));
    await row('echo: call').click();
    const content = await inspector().locator('details[open] pre').textContent();
    assert.equal(JSON.parse(content).payload.params.title, 'Report');
    await row('echo: completed').waitFor();
    await page.evaluate(() => window.client.call('nothing'));
    await row('nothing: failed: UNKNOWN_CAPABILITY').waitFor();
    assert.deepEqual(problems, []);
  });

  test('calls have a state, an age and a deadline, and say how they ended', async () => {
    await open();
    await page.evaluate(() => {
      window.controller = new AbortController();
      const { signal } = window.controller;
      window.pending = window.client.call('hang', {}, { signal, timeout: 6_000_000 });
    });
    await tab('Calls').click();
    await call('hang', 'waiting', /\d+ min \d+ s/).waitFor();
    await page.evaluate(() => window.controller.abort('the user pressed stop'));
    await call('hang', 'ended', 'cancelled: CANCELLED: the user pressed stop').waitFor();
    await call('hang').getByRole('button').click();
    await row('hang: call').waitFor();
    await row('hang: cancel: the user pressed stop').waitFor();
  });

  test('counters have their reasons', async () => {
    await open();
    await page.evaluate(async () => {
      for (let i = 0; i < 2; i++) await window.client.call('echo', {}, { callId: '' });
    });
    await tab('Counters').click();
    const reasons = inspector().locator('.reasons li', { hasText: 'echo: INVALID_PARAMS' });
    await reasons.nth(1).waitFor();
    const refused = inspector().locator('dl > div', { hasText: 'Refused' });
    assert.match(await refused.textContent(), /^Refused\d/);
  });

  test('it pauses, goes on with what it missed, and clears', async () => {
    await open();
    const pause = inspector().getByRole('button', { name: 'Pause' });
    await pause.click();
    assert.equal(await pause.getAttribute('aria-pressed'), 'true');
    await page.evaluate(async () => {
      await window.client.call('echo', 'unseen');
      // Whatever was going to be shown is shown by then.
      for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
    });
    assert.equal(await row('echo: call').count(), 0);
    await pause.click();
    await row('echo: call').waitFor();
    await inspector().getByRole('button', { name: 'Clear' }).click();
    assert.equal(await row('echo: call').count(), 0);
  });

  test('it observes only while it is in the document', async () => {
    await page.evaluate(() => {
      window.observed = 0;
      window.target = {
        counters: {},
        observe: async () => (window.observed++, () => window.observed--),
      };
    });
    const observed = async (act) => {
      await page.evaluate(act);
      return page.evaluate(() => window.observed);
    };
    assert.equal(await observed(() => window.inspector.attach(window.target)), 1);
    assert.equal(await observed(() => window.inspector.attach(window.target)), 1);
    assert.equal(await observed(() => window.inspector.remove()), 0);
    assert.equal(await observed(() => document.body.append(window.inspector)), 1);
    assert.equal(await observed(() => window.inspector.detach(window.target)), 0);
    const atOnce = () => (window.inspector.attach(window.target), window.inspector.remove());
    assert.equal(await observed(atOnce), 0);
  });

  test('what a peer says is text, never HTML', async () => {
    await open();
    await page.evaluate(() =>
      window.client.call('<img src=x onerror="window.attacked = true">', '<b>x</b>', {
        callId: '<i>1</i>',
      }),
    );
    await row('<img').click();
    await tab('Calls').click();
    await call('<img').waitFor();
    const made = () => window.inspector.shadowRoot.querySelectorAll('img, b, i').length;
    assert.equal(await page.evaluate(made), 0);
    assert.equal(await page.evaluate(() => window.attacked), undefined);
  });
});

describe('a recording', () => {
  test('is opened from a file, and is searched and filtered', async () => {
    await inspector()
      .locator('input[type=file]')
      .setInputFiles({
        name: 'session.jsonl',
        mimeType: 'application/json',
        buffer: await readFile(recording),
      });
    await row('echo: completed').waitFor();
    const all = await inspector().locator('summary').count();
    await inspector().getByLabel('Show').selectOption('Failures and problems');
    const failures = await inspector().locator('summary').allTextContents();
    assert.ok(failures.length > 0 && failures.length < all);
    assert.ok(
      failures.every((text) => /failed|refused|dropped/.test(text)),
      `${failures}`,
    );
    await inspector().getByLabel('Show').selectOption('Everything');
    await inspector().getByRole('searchbox').fill('of/others');
    await row('of/others').waitFor();
    const found = await inspector().locator('summary').count();
    assert.ok(found > 0 && found < all);
    assert.equal(await inspector().locator('output').textContent(), `${found} of ${all}`);
    await inspector().getByRole('searchbox').fill('no such thing');
    await inspector().getByText('No message matches.').waitFor();
  });

  test('that is none is refused, with the reason', async () => {
    const buffer = Buffer.from('{"log": {}}\nGET /');
    const file = { name: 'x.har', mimeType: 'text/plain', buffer };
    await inspector().locator('input[type=file]').setInputFiles(file);
    await inspector().getByText('This is not a recording: line 2 is not JSON').waitFor();
  });

  test('of this very page opens, too', async () => {
    const rows = await page.evaluate(async () => {
      const { text } = await window.recordSession();
      window.inspector.open(text);
      return window.inspector.shadowRoot.querySelectorAll('summary').length;
    });
    assert.ok(rows > 40, `${rows}`);
  });
});

describe('by keyboard', () => {
  test('one Tab reaches the messages, arrows go from one to the next, and Enter opens one', async () => {
    await openRecording();
    await inspector().locator('#messages').focus();
    await page.keyboard.press('Tab');
    const first = await focused();
    await page.keyboard.press('ArrowDown');
    const second = await focused();
    assert.notEqual(first, second);
    await page.keyboard.press('Enter');
    assert.match(await inspector().locator('details[open] pre').textContent(), /"type"/);
    await page.keyboard.press('ArrowUp');
    assert.equal(await focused(), first);
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowDown');
    const last = await focused();
    await page.keyboard.press('Home');
    assert.equal(await focused(), first);
    assert.notEqual(last, first);
    const reached = () =>
      window.inspector.shadowRoot.querySelectorAll('summary[tabindex="0"]').length;
    assert.equal(await page.evaluate(reached), 1);
  });

  test('arrows go from view to view, and round', async () => {
    await tab('Messages').focus();
    await page.keyboard.press('ArrowLeft');
    assert.equal(await focused(), 'Counters');
    assert.ok(await inspector().locator('#counters').isVisible());
    await page.keyboard.press('ArrowRight');
    assert.equal(await focused(), 'Messages');
    assert.ok(!(await inspector().locator('#counters').isVisible()));
  });

  test('the focus stays on a call while its age is shown anew', async () => {
    await open();
    await page.evaluate(() => void (window.pending = window.client.call('hang')));
    await tab('Calls').click();
    const cell = call('hang').locator('td').nth(4);
    await call('hang').getByRole('button').focus();
    const age = await cell.textContent();
    await page.waitForFunction(
      (age) =>
        window.inspector.shadowRoot.querySelector('tbody td:nth-child(5)').textContent !== age,
      age,
    );
    assert.equal(await focused(), 'hang');
  });
});

for (const colorScheme of ['light', 'dark']) {
  for (const width of [900, 360]) {
    test(`axe finds nothing wrong: ${colorScheme}, ${width} pixels wide`, async () => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 700 });
      await openRecording();
      await page.evaluate(axe);
      for (const name of ['Messages', 'Calls', 'Counters']) {
        await tab(name).click();
        if (name === 'Messages') await inspector().locator('summary').first().click();
        const { violations, passes } = await page.evaluate(() => window.axe.run('abp-inspector'));
        const found = violations.map(({ id, nodes }) => [
          id,
          nodes[0].html,
          nodes[0].failureSummary,
        ]);
        assert.deepEqual(found, [], name);
        assert.ok(
          passes.some(({ id }) => id === 'color-contrast'),
          'the contrast was checked',
        );
        const overflows = () => document.documentElement.scrollWidth > window.innerWidth;
        assert.equal(await page.evaluate(overflows), false);
      }
    });
  }
}
