// npm run bench:mcp-apps: views and hosts of MCP Apps, this library's and ext-apps', in Chromium:
// their size, and the time of a call of a view's tool through the same sandbox. --quick is a smoke
// run: its numbers mean nothing.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { sites } from '../../../tests/support/browser.js';
import { withoutLazy } from '../../../scripts/size.js';
import { PAGES, sandboxFor, viewDocuments } from '../tests/support/mcp-apps.js';

const quick = process.argv.includes('--quick');
const [ROUNDS, CALLS, AT_ONCE] = quick ? [1, 10, 10] : [5, 300, 200];

const kilobytes = (bytes) => Number((gzipSync(bytes, { level: 9 }).length / 1024).toFixed(1));

async function weigh() {
  const bundled = async (names, from, plugins = []) => {
    const { outputFiles } = await build({
      stdin: {
        contents: `import { ${names} } from '${from}'; globalThis.kept = [${names}];`,
        resolveDir: import.meta.dirname,
      },
      bundle: true,
      minify: true,
      format: 'esm',
      target: 'es2022',
      write: false,
      plugins,
    });
    return kilobytes(outputFiles[0].contents);
  };
  const ours = '../src/index.js';
  const theirs = '@modelcontextprotocol/ext-apps';
  const folder = new URL('../dist/page/', import.meta.url);
  const single = (name) => kilobytes(readFileSync(new URL(name, folder)));
  return {
    createView: await bundled('createView', ours, [withoutLazy]),
    'createView in one file': single('view.js'),
    'createView and expose in one file': single('app.js'),
    'ext-apps, App': await bundled('App, PostMessageTransport', theirs),
    'ext-apps, App with its dependencies': await bundled('App', `${theirs}/app-with-deps`),
    createHost: await bundled('createHost', ours, [withoutLazy]),
    'ext-apps, AppBridge': await bundled('AppBridge, PostMessageTransport', `${theirs}/app-bridge`),
  };
}

/** In the host's page: ms to begin, for a single call, and for one of many in flight. */
async function measure([options, calls, atOnce]) {
  const begun = performance.now();
  await window.show(options);
  const tool = options.host === 'theirs' && options.view === 'ours' ? 'text_echo' : 'text.echo';
  const connect = performance.now() - begun;
  const call = () => window.end.call(tool, { text: 'x' });
  const time = async (act) => {
    const before = performance.now();
    await act();
    return performance.now() - before;
  };
  await call();
  const alone = await time(async () => {
    for (let i = 0; i < calls; i++) await call();
  });
  const many = await time(() => Promise.all(Array.from({ length: atOnce }, call)));
  await window.end.close();
  return { connect, alone: alone / calls, many: many / atOnce };
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

async function race() {
  const site = await sites();
  try {
    const html = await viewDocuments();
    const sandbox = sandboxFor(site, site.hostOrigin);
    const page = await site.browser.newPage();
    await page.goto(`${site.hostOrigin}${PAGES}/host.html`);
    await page.waitForFunction(() => window.isReady);
    const results = { theirs: [], ours: [] };
    for (let round = 0; round < ROUNDS; round++) {
      for (const who of Object.keys(results)) {
        const options = { host: who, view: who, sandbox, html: html[who] };
        results[who].push(await page.evaluate(measure, [options, CALLS, AT_ONCE]));
      }
    }
    return Object.fromEntries(
      ['connect', 'alone', 'many'].map((what) => {
        const [theirs, ours] = ['theirs', 'ours'].map((who) =>
          median(results[who].map((result) => result[what])),
        );
        return [what, { 'ours / ext-apps': Number((ours / theirs).toFixed(2)), 'ms here': ours }];
      }),
    );
  } finally {
    await site.close();
  }
}

console.log('KB, minified and gzipped:');
console.table(await weigh());
console.log('Both sides ours, beside both sides ext-apps:');
console.table(await race());
