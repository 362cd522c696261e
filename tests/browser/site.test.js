// The site of the documents: it is built, its links lead somewhere, its examples run with the
// package's files for pages, and axe finds nothing on a few of its pages.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { GROUPS } from '../../docs/site/entries.js';
import { DOCUMENTS, NAVIGATION, pageOf, referenceOf } from '../../docs/site/navigation.js';
import { ENTRIES, MAIN, PACKAGES } from '../../scripts/entries.js';
import { launch } from '../support/browser.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const site = join(root, 'build/site');
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

before(() => execFileSync('scripts/site.sh', { cwd: root }));

test('every document is a page, and every link and anchor leads somewhere', () => {
  const files = readdirSync(site).filter((name) => name.endsWith('.html'));
  for (const path of DOCUMENTS) assert.ok(files.includes(pageOf(path)), path);
  assert.equal(new Set(DOCUMENTS.map(pageOf)).size, DOCUMENTS.length, 'each has a page of its own');
  const texts = new Map(files.map((name) => [name, readFileSync(join(site, name), 'utf8')]));
  const ids = (text) => new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
  const dead = [];
  let count = 0;
  for (const [name, text] of texts) {
    for (const [, link] of text.matchAll(/ (?:href|src)="([^"]*)"/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      count++;
      const [path, anchor] = link.split('#');
      const target = path || name;
      const found = existsSync(join(site, target));
      const within = !anchor || ids(texts.get(target) ?? '').has(anchor);
      if (!found || !within) dead.push(`${name}: ${link}`);
    }
  }
  assert.deepEqual(dead, []);
  assert.ok(count > 1000);
});

/** The reference of an entry, and what of it is below a heading, up to the next one as high. */
const referenceAt = (path) => readFileSync(join(site, `${referenceOf(path)}.html`), 'utf8');
const sectionOf = (text, id) => {
  const [, level] = new RegExp(`<h([1-6]) id="${id.replaceAll('.', '\\.')}"`).exec(text) ?? [];
  assert.ok(level, `there is a heading ${id}`);
  const from = text.indexOf(` id="${id}"`);
  const end = text.slice(from).search(new RegExp(`<h[1-${level}]\\b`));
  return text.slice(from, end < 0 ? undefined : from + end);
};
const wordsOf = (html) =>
  html
    .replace(/<[^>]*>/g, '')
    .replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(code))
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>');

test('the API reference has a page for each entry, and each entry a group', () => {
  const grouped = GROUPS.flatMap(({ entries }) => Object.keys(entries));
  assert.deepEqual(grouped.sort(), Object.keys(ENTRIES).sort());
  for (const path of grouped) assert.match(referenceAt(path), /<h3 id=|<li><a href="api-/, path);
});

test('README names each entry of the main package and, in one line each, its neighbours', () => {
  const readOf = (folder) => readFileSync(join(root, folder, 'README.md'), 'utf8');
  const readme = readOf('');
  for (const path of Object.keys(MAIN.entries))
    assert.ok(readme.includes(`\`${path.replace(/^abp-bridge\//, '/')}\``), path);
  for (const { name, folder, entries } of PACKAGES.filter((each) => each !== MAIN)) {
    const lines = readme.split('\n').filter((line) => line.includes(`[\`${name}\`]`));
    assert.equal(lines.length, 1, name);
    assert.ok(lines[0].includes(`(${folder}/README.md)`), lines[0]);
    for (const path of Object.keys(entries))
      assert.ok(readOf(folder).includes(`\`${path}\``), path);
  }
});

test('a signature in the reference has types, its options are in one table, what is required first', () => {
  for (const [path, id, signature, required, optional] of [
    ['abp-bridge', 'connect', /options: ConnectOptions/, ['origin', 'agent'], ['timeout', 'trace']],
    [
      'abp-bridge',
      'expose',
      /options\?: ExposeOptions/,
      [],
      ['origins', 'keys', 'webmcp', 'debug'],
    ],
    [
      'abp-bridge',
      'client.call',
      /name: Name.*Promise<ResponseOf<App, Name>>/s,
      [],
      ['signal', 'retry'],
    ],
    ['abp-bridge/pool', 'pool', /start: \(\) => AnyWorker/, [], ['size', 'grace']],
    [
      'abp-bridge/transports',
      'websockettransport',
      /target: string \| URL \| Socket/,
      [],
      ['maxLength'],
    ],
    [
      'abp-bridge/react',
      'useconnection',
      /options: ConnectOptions/,
      ['agent'],
      ['origin', 'reconnect'],
    ],
    ['@abp-bridge/mcp-apps', 'createhost', /options: FrameOptions/, ['sandbox', 'resource'], []],
  ]) {
    const section = sectionOf(referenceAt(path), id);
    const rows = [...section.matchAll(/<tr><td><code id="[^"]*".*?<\/tr>/gs)].map(([row]) => row);
    const rowOf = (name) => rows.findIndex((row) => row.includes(`>${name}</code>`));
    assert.match(wordsOf(section), signature, id);
    assert.match(section, /Example/, id);
    const first = rows.findIndex((row) => !row.includes('class="required"'));
    for (const name of required) {
      assert.match(rows[rowOf(name)] ?? '', /required/, `${id}: ${name} is required`);
      assert.ok(first < 0 || rowOf(name) < first, `${id}: ${name} comes first`);
    }
    for (const name of optional) assert.ok(rowOf(name) >= 0, `${id}: ${name}`);
  }
  const timeout =
    /<tr><td><code id="connect\.timeout".*?<\/tr>/s.exec(referenceAt('abp-bridge'))?.[0] ?? '';
  assert.match(wordsOf(timeout), /^timeout\s*number\s*10000\s/);
});

test('no signature in the reference is without types', () => {
  let count = 0;
  for (const path of Object.keys(ENTRIES)) {
    const signatures = referenceAt(path).matchAll(/<pre class="signature".*?<\/pre>/gs);
    for (const [html] of signatures) {
      const text = wordsOf(html).replaceAll('=>', '→');
      if (/^(class|interface|type|const) /.test(text)) continue;
      let bare = text; // without what is in <> and []
      while (bare !== (bare = bare.replace(/<[^<>]*>|\[[^[\]]*\]/g, '')));
      count++;
      assert.doesNotMatch(bare, /& object|[(,]\s*(\.\.\.)?\w+\??\s*[,)]/, `${path}: ${text}`);
      if (!text.startsWith('new ')) assert.match(text, /\): \S/, `${path}: ${text}`);
    }
  }
  assert.ok(count > 100);
});

describe('in a browser', () => {
  let server, browser, page, url;
  const problems = [];
  before(async () => {
    server = createServer((request, response) => {
      const path = join(site, new URL(request.url, 'http://localhost').pathname);
      if (!existsSync(path) || !statSync(path).isFile()) return response.writeHead(404).end();
      const type = TYPES[extname(path)] ?? 'application/octet-stream';
      response.writeHead(200, { 'content-type': type }).end(readFileSync(path));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${server.address().port}/`;
    browser = await launch();
    page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (said) => said.type() === 'error' && problems.push(said.text()));
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });

  const output = (id) => page.locator(`#${id} output`);
  const says = (id, text) => output(id).filter({ hasText: text }).waitFor();
  const button = (id, name) => page.locator(`#${id}`).getByRole('button', { name });

  test('a call is stopped under way, and its app says so', async () => {
    await page.goto(`${url}examples.html`);
    await button('cancel', 'Count primes').and(page.locator(':enabled')).waitFor();
    // The page itself presses Stop as soon as the app has begun, however busy the machine is.
    await page.evaluate(() => {
      const [run, stop] = document.querySelectorAll('#cancel button');
      const bar = document.querySelector('#cancel progress');
      new MutationObserver(() => bar.value && stop.click()).observe(bar, { attributes: true });
      run.click();
    });
    await says('cancel', 'CANCELLED: you pressed Stop');
  });

  test('a result flows word by word, and its stream is stopped', async () => {
    await button('stream', 'Tell a story').click();
    await says('stream', /^The agent .*\(\d+ words\)$/);
    await page.evaluate(() => {
      const [run, stop] = document.querySelectorAll('#stream button');
      run.click();
      stop.click();
    });
    await says('stream', /^… you pressed Stop$/);
  });

  test('a question in the midst of a call is answered, and goes away with its call', async () => {
    await button('question', 'Delete').click();
    await button('question', 'Yes').click();
    await says('question', '2 files are deleted');
    await button('question', 'Delete').click();
    await button('question', 'No').click();
    await says('question', '0 files are deleted');
    await button('question', 'Delete').click();
    await button('question', 'Yes').waitFor();
    await button('question', 'Stop').click();
    await says('question', 'CANCELLED: you pressed Stop');
    await button('question', 'Yes').waitFor({ state: 'hidden' });
  });

  for (const [id, what, from, to, then] of [
    ['cancel', 'Count primes', 'below: 10_000_000', 'below: 100', /^25 primes$/],
    [
      'stream',
      'Tell a story',
      /'The agent asked[^;]+/,
      "'Once changed.'",
      /^Once changed\. \(2 words\)$/,
    ],
    ['question', 'Delete two files', "'notes.txt'", '', /^1 files are deleted$/],
  ])
    test(`the code of an example is changed and run again: ${id}`, async () => {
      await page.goto(`${url}examples.html`);
      const sources = page.locator(`.sources[data-of=${id}]`);
      const changed = sources.getByRole('button', { name: 'Run the changed code' });
      assert.ok(await changed.isHidden());
      for (const name of ["The app's code", "The agent's code"]) {
        const code = sources.getByRole('textbox', { name });
        await code.fill((await code.innerText()).replace(from, to));
      }
      await changed.click();
      await button(id, what).and(page.locator(':enabled')).click();
      if (id === 'question') await button(id, 'Yes').click();
      await says(id, then);
    });

  test('a search finds what a document says', async () => {
    await page.goto(`${url}index.html`);
    await page.getByRole('combobox', { name: 'Search the documents' }).fill('backpressure');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Backpressure' }).first().waitFor();
    for (const [words, title] of [
      ['tutorial', 'Tutorial'],
      ['react component', 'React'],
      ['CORS', 'Errors'],
    ]) {
      await page.goto(`${url}search.html?q=${encodeURIComponent(words)}`);
      const results = page.locator('.pagefind-ui__result-title');
      await results.filter({ hasText: title }).first().waitFor();
    }
  });

  test('results come while one types, the API first, and by keyboard alone', async () => {
    await page.goto(`${url}apps.html`);
    const field = page.getByRole('combobox', { name: 'Search the documents' });
    const options = page.getByRole('option');
    const isChosen = (i) =>
      page.waitForFunction(
        (at) => document.querySelectorAll('#found [aria-selected=true]')[0]?.id === `found-${at}`,
        i,
      );
    for (const shortcut of ['Control+k', 'Meta+k', '/']) {
      await page.evaluate(() => document.activeElement.blur());
      await page.keyboard.press(shortcut);
      assert.ok(await field.evaluate((input) => input === document.activeElement), shortcut);
    }
    await page.keyboard.type('onProgress');
    await options.first().filter({ hasText: 'API' }).waitFor();
    assert.equal(await field.getAttribute('aria-expanded'), 'true');
    await page.keyboard.press('ArrowDown');
    await isChosen(0);
    assert.equal(await field.getAttribute('aria-activedescendant'), 'found-0');
    await page.keyboard.press('ArrowDown');
    await isChosen(1);
    await page.keyboard.press('ArrowUp');
    await isChosen(0);
    await page.keyboard.press('Escape');
    await page.getByRole('listbox').waitFor({ state: 'hidden' });
    assert.equal(await field.inputValue(), 'onProgress');
    await page.keyboard.press('ArrowDown');
    await isChosen(0);
    await page.keyboard.press('Enter');
    await page.waitForURL(/api-abp-bridge\.html#\S*onprogress$/i);
  });

  test('on the landing page a call begins by itself, Stop stops it, and it says what became of it', async () => {
    await page.goto(`${url}index.html`);
    const bar = page.getByRole('progressbar', { name: 'Progress of the report' });
    await page.waitForFunction(() => document.querySelector('#stop progress').value > 0);
    assert.ok((await bar.getAttribute('value')) < 100);
    const box = () => page.locator('#stop').boundingBox();
    const before = await box();
    await button('stop', 'Stop').focus();
    await page.keyboard.press('Enter');
    await says('stop', /^Outcome: stopped\. The app has stopped: \d+ of 100 pages are written\.$/);
    const written = await page.frameLocator('#stop iframe').locator('.written').count();
    assert.ok((await output('stop').textContent()).includes(`: ${written} of 100`));
    assert.deepEqual(await box(), before, 'nothing has shifted');
    await button('stop', 'Write the report').and(page.locator(':enabled')).waitFor();
  });

  test('who wants less motion begins it with a click, and without scripts there is a picture', async () => {
    const still = await browser.newPage({ reducedMotion: 'reduce' });
    await still.goto(`${url}index.html`);
    const start = still.getByRole('button', { name: 'Write the report' });
    await start.and(still.locator(':enabled')).waitFor();
    assert.equal(await still.locator('#stop output').textContent(), '');
    await start.click();
    await still.waitForFunction(() => document.querySelector('#stop progress').value > 0);
    await still.close();
    const plain = await browser.newPage({ javaScriptEnabled: false });
    await plain.goto(`${url}index.html`);
    assert.ok(await plain.getByRole('img', { name: /^The demo/ }).isVisible());
    assert.ok(await plain.locator('#stop').isHidden());
    await plain.close();
  });

  test('a wide page has its sections beside it, what is next, and code that can be copied', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.goto(`${url}apps.html`);
    assert.ok(await page.getByRole('navigation', { name: 'On this page' }).isVisible());
    await page.getByRole('link', { name: 'Next: Writing an agent' }).waitFor();
    const block = page.locator('.code').first();
    await block.getByRole('button', { name: 'Copy' }).click();
    await block.getByRole('button', { name: 'Copied' }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, (await block.locator('pre').innerText()).trimEnd());
  });

  test('llms.txt lists every document', () => {
    const text = readFileSync(join(site, 'llms.txt'), 'utf8');
    for (const { file } of NAVIGATION.flatMap(({ pages }) => pages))
      assert.ok(text.includes(`(${pageOf(file)})`), file);
  });

  for (const colorScheme of ['light', 'dark']) {
    test(`axe finds nothing, and nothing is cut off on a phone (${colorScheme})`, async () => {
      await page.emulateMedia({ colorScheme });
      const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8');
      for (const name of [
        'index',
        'apps',
        'examples',
        'states',
        'c-library',
        'api-abp-bridge',
        'search',
      ]) {
        await page.setViewportSize({ width: 1280, height: 900 });
        await page.goto(`${url}${name}.html?q=cancel`);
        if (name === 'search') await page.locator('.pagefind-ui__result').first().waitFor();
        await page.evaluate(axe);
        const violations = await page.evaluate(async () => {
          const found = await globalThis.axe.run(document);
          return found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
        });
        assert.deepEqual(violations, [], name);
        const folder = process.env.SCREENSHOTS;
        const shoot = (how) =>
          folder && page.screenshot({ path: `${folder}/site-${name}-${colorScheme}-${how}.png` });
        await shoot('wide');
        await page.setViewportSize({ width: 390, height: 844 });
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(width <= 390, `${name} is ${width} pixels wide`);
        await shoot('phone');
      }
    });
  }

  test('its pages have no errors', () => assert.deepEqual(problems, []));
});
