/** Visits of a page that has one library: the first, and later ones; and what a page loads. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { ARGS, executablePath, patient } from '../support/browser.js';
import { FLOOR, bundling, folder, spread } from './shared.js';

const built = folder('../../build/bench/visits/');
const SIDES = { host: 'visit', app: 'serve' };
/** What a page says before what it has taken. */
const VISITED = 'visited ';

/**
 * Each library as a page of one side loads it, in files of its own, and the two pages; and both
 * sides in one page, which are what is downloaded.
 */
async function makePages(names) {
  rmSync(built, { recursive: true, force: true });
  const glue = { visit: folder('pages/visit-host.js'), serve: folder('pages/visit-app.js') };
  await build({ ...bundling, entryPoints: glue, outdir: join(built, 'pages') });
  for (const name of names) {
    for (const [side, exported] of Object.entries({
      host: 'host',
      app: 'app',
      both: 'host, app',
    })) {
      const contents = `export { ${exported} } from './peers/${name}.js'`;
      const stdin = { contents, resolveDir: folder('.'), sourcefile: 'entry.js' };
      const outdir = join(built, name, side);
      await build({ ...bundling, entryNames: 'entry', stdin, outdir });
    }
    for (const [side, use] of Object.entries(SIDES))
      writeFileSync(
        join(built, name, `${side}.html`),
        `<!doctype html>
<meta charset="utf-8" />
<link rel="icon" href="data:," />
<body></body>
<script type="module">
  import { ${side} } from './${side}/entry.js';
  import { ${use} } from '../pages/${use}.js';
  ${use}(${side});
</script>`,
      );
  }
}

/**
 * Bytes that a page with both sides loads before the first call is answered: its entry, what that
 * imports, and what visits have loaded by `import()`.
 * @param {string} name
 * @param {string[]} loaded paths of what the visits have loaded
 */
function download(name, loaded) {
  const files = readdirSync(join(built, name, 'both'));
  const nameOf = (path) => path.replace(/-[^-]*$/, '');
  const lazy = loaded.map((path) => nameOf(path.split('/').at(-1)));
  const needed = new Set(['entry.js']);
  for (const file of needed) {
    const text = readFileSync(join(built, name, 'both', file), 'utf8');
    for (const [, dynamic, path] of text.matchAll(/(?:import\s*(\(?)|from\s*)"\.\/([^"]+)"/g))
      if (!dynamic || lazy.includes(nameOf(path))) needed.add(path);
  }
  return files
    .filter((file) => needed.has(file))
    .reduce((sum, file) => sum + compressed(join(name, 'both', file)).length, 0);
}

/** Minified and gzipped, as it is sent. */
const compressed = (path) => gzipSync(readFileSync(join(built, path)), { level: 9 });

/**
 * Serves these files as a deployment does: compressed, and scripts may be kept. The first part of a
 * path names a visitor: what has not been loaded under this name is in no cache, neither the file
 * nor the code that the engine has made of it.
 */
function serve() {
  const files = new Map();
  const server = createServer((request, response) => {
    const [, path] = /^\/[^/]+\/([^?]+)/.exec(request.url);
    if (!files.has(path)) files.set(path, compressed(path));
    const isPage = path.endsWith('.html');
    response.writeHead(200, {
      'content-type': isPage ? 'text/html' : 'text/javascript',
      'content-encoding': 'gzip',
      'cache-control': isPage ? 'no-cache' : 'public, max-age=31536000, immutable',
      'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp',
      'cross-origin-resource-policy': 'cross-origin',
    });
    response.end(files.get(path));
  });
  return new Promise((resolve) => server.listen(0, () => resolve(server)));
}

/**
 * From the frame's being ready to the first call's answer, and from the navigation to the page to
 * that, each next to a visit with the floor. A later visit is the third or a later one: at the
 * second, Chromium writes down the code that it has made of a script.
 * @param {string[]} names
 * @param {{ quick: boolean, log: (line: string) => void }} how
 * @returns {Promise<Record<string, Record<string, any>>>} columns of the comparison, by title and
 *   library
 */
export async function visits(names, { quick, log }) {
  await makePages(names);
  const [host, app] = await Promise.all([serve(), serve()]);
  // Only a profile on disk has a cache of code.
  const profile = mkdtempSync(join(tmpdir(), 'bench-'));
  const options = { executablePath, args: ARGS };
  const context = patient(await chromium.launchPersistentContext(profile, options));
  const take = async (visitor, name) => {
    const page = await context.newPage();
    page.on('pageerror', (error) => void Promise.reject(error));
    const appUrl = `http://localhost:${app.address().port}/${visitor}/${name}/app.html`;
    const at = `http://127.0.0.1:${host.address().port}/${visitor}/${name}/host.html`;
    // It is not asked: a page compiles what looks into it, while it connects.
    const visited = page.waitForEvent('console', (message) => message.text().startsWith(VISITED));
    await page.goto(`${at}?${encodeURIComponent(appUrl)}`);
    const value = JSON.parse((await visited).text().slice(VISITED.length));
    await page.close();
    return value;
  };

  const bytes = {};
  for (let i = 0; i < 2; i++) {
    for (const name of names) {
      const { files } = await take('known', name);
      bytes[name] = { median: download(name, files) / 1000 };
    }
    // The code is written down a moment after a page has come to rest.
    if (!quick) await pause(2000);
  }
  const taken = { first: {}, later: {} };
  const count = quick ? 1 : 4;
  for (let round = 0; round < count; round++) {
    for (const which of ['first', 'later']) {
      for (let i = 0; i < names.length; i++) {
        const name = names[(i + round) % names.length];
        const visitor = (who) => (which === 'first' ? `${who}-${round}-${i}` : 'known');
        // One visit with the floor is next to two others: right after the one, and right before the
        // other.
        const floor = () => take(visitor('floor'), FLOOR);
        const before =
          i % 2 ? taken[which][names[(i - 1 + round) % names.length]].at(-1)[1] : undefined;
        const mine = await take(visitor('it'), name);
        (taken[which][name] ??= []).push([mine, before ?? (await floor())]);
      }
    }
  }
  await context.close();
  host.close();
  app.close();
  rmSync(profile, { recursive: true, force: true });
  log('visits');
  const column = (which, what) =>
    Object.fromEntries(
      names.map((name) => {
        const all = taken[which][name];
        const ms = spread(all.map(([mine]) => mine[what])).median;
        return [name, { ...spread(all.map(([mine, floor]) => mine[what] / floor[what])), ms }];
      }),
    );
  return {
    'connect, first visit': column('first', 'connect'),
    'connect, later visit': column('later', 'connect'),
    'page, first visit': column('first', 'page'),
    'page, later visit': column('later', 'page'),
    'KB to download': bytes,
  };
}
