/** Visits of a page that has one library: the first, and later ones; and what a page loads. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

/** Each library in files of its own, one for each side and those that both share or load later, and its two pages. */
async function makePages(names) {
  rmSync(built, { recursive: true, force: true });
  const glue = { visit: folder('pages/visit-host.js'), serve: folder('pages/visit-app.js') };
  await build({ ...bundling, entryPoints: glue, outdir: join(built, 'pages') });
  for (const name of names) {
    const outdir = join(built, name);
    mkdirSync(outdir);
    for (const side of Object.keys(SIDES)) {
      const source = `export { ${side} } from '${folder(`peers/${name}.js`)}';`;
      writeFileSync(join(outdir, `${side}.entry.js`), source);
      writeFileSync(
        join(outdir, `${side}.html`),
        `<!doctype html>
<meta charset="utf-8" />
<link rel="icon" href="data:," />
<body></body>
<script type="module">
  import { ${side} } from './${side}.js';
  import { ${SIDES[side]} } from '../pages/${SIDES[side]}.js';
  ${SIDES[side]}(${side});
</script>`,
      );
    }
    const entryPoints = { host: join(outdir, 'host.entry.js'), app: join(outdir, 'app.entry.js') };
    await build({ ...bundling, entryPoints, outdir });
  }
}

/** Minified and gzipped, as it is sent. */
const compressed = (path) => gzipSync(readFileSync(join(built, path)), { level: 9 });

/**
 * Serves these files as a deployment does: compressed, and scripts may be kept. The first part of a path names a visitor: what has not
 * been loaded under this name is in no cache, neither the file nor the code that the engine has made of it.
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
 * From the frame's being ready to the first call's answer, and from the navigation to the page to that, each next to a visit with the
 * floor. A later visit is the third or a later one: at the second, Chromium writes down the code that it has made of a script.
 * @param {string[]} names
 * @param {{ quick: boolean, log: (line: string) => void }} how
 * @returns {Promise<Record<string, Record<string, any>>>} columns of the comparison, by title and library
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
    await page.goto(`${at}?${encodeURIComponent(appUrl)}`);
    const visited = await page.waitForFunction(() => window.visited);
    const value = await visited.jsonValue();
    await page.close();
    return value;
  };

  const bytes = {};
  for (let i = 0; i < 2; i++) {
    for (const name of names) {
      const { files } = await take('known', name);
      const own = files.map((file) => new URL(file).pathname.replace(/^\/[^/]+\//, ''));
      const loaded = new Set(own.filter((path) => path.startsWith(`${name}/`)));
      const sum = [...loaded].reduce((sum, path) => sum + compressed(path).length, 0);
      bytes[name] = { median: sum / 1000 };
    }
    // The code is written down a moment after a page has come to rest.
    if (!quick) await pause(2000);
  }
  const taken = { first: {}, later: {} };
  const count = quick ? 1 : 7;
  for (let round = 0; round < count; round++) {
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length];
      for (const which of ['first', 'later']) {
        const visitor = (who) => (which === 'first' ? `${who}-${round}-${i}` : 'known');
        const floor = () => take(visitor('floor'), FLOOR);
        const before = round % 2 ? await floor() : undefined;
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
