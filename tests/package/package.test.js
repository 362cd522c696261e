// The package as a stranger gets it: packed, installed into an empty project, and used in Node,
// through esbuild, through Vite, and in a page without a bundler.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { ENTRIES, PACKAGES } from '../../scripts/entries.js';
import {
  EXPECTED,
  SMOKE,
  importMap,
  newProject,
  npm,
  openPages,
  pageOf,
  root,
  writeAppPage,
} from '../support/packed.js';

const bin = (name) => join(root, 'node_modules/.bin', name);
/** What a user may write after `from`. */
const entries = [...Object.keys(ENTRIES), 'abp-bridge/page', 'abp-bridge/page/bundle'];
/** Both sides in a page: says what became of a call, or the error of it or of connecting. */
const RETRY = `
  import { connect, expose } from 'abp-bridge';
  const inputSchema = { type: 'object', properties: { n: { type: 'number' } } };
  globalThis.agent = async () => {
    const { port1, port2 } = new MessageChannel();
    const double = { inputSchema, handler: ({ n }) => n * 2 };
    const app = expose(
      { app: { id: 'a', name: 'A', version: '1' }, capabilities: { double } },
      { port: port1 },
    );
    try {
      const client = await connect(port2, { agent: { name: 'a', version: '1' } });
      const { success, data, error } = await client.call('double', { n: 21 });
      return success ? data : [error.code, error.retryable];
    } catch (error) {
      return [error.code, error.retryable];
    } finally {
      app.close();
    }
  };
`;
const installed = (name) => `node_modules/${name}/dist`;
/** The main entry in files that load no other; in the second the core is JavaScript alone. */
const ALONE = [
  `/${installed('abp-bridge')}/page/abp-bridge.bundle.js`,
  `/${installed('@abp-bridge/mcp-apps')}/page/app.js`,
];
/** The budget of what is installed with the main package. */
const MOST = { files: 320, bytes: 4_400_000 };
let project, pages;

before(async () => {
  ({ project } = newProject());
  const [listed] = JSON.parse(npm('pack', '--dry-run', '--ignore-scripts', '--json'));
  assert.deepEqual(
    listed.files.map(({ path }) => path).filter((path) => !/^(dist|docs|templates)\//.test(path)),
    [
      'CHANGELOG.md',
      'CONTRIBUTING.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'demo/examples/sieve.c',
      'package.json',
      'src/abp_token.h',
    ],
  );
  const { entryCount, unpackedSize } = listed;
  const within = entryCount <= MOST.files && unpackedSize <= MOST.bytes;
  assert.ok(within, `${entryCount} files, ${unpackedSize} bytes: what of it does no user read?`);
  writeFileSync(join(project, 'index.html'), pageOf('/main.js'));
  writeFileSync(join(project, 'esbuild.html'), pageOf('/out/main.js'));
  writeFileSync(join(project, 'retry.html'), pageOf('/out/retry.js'));
  writeFileSync(join(project, 'retry.js'), RETRY);
  writeFileSync(join(project, 'direct.html'), pageOf('/main.js', importMap));
  writeAppPage(project);
  for (const name of ['expose', 'connect']) {
    writeFileSync(join(project, `${name}.html`), pageOf(`/${name}.js`, importMap));
    writeFileSync(
      join(project, `${name}.js`),
      `import { ${name} } from 'abp-bridge';\nglobalThis.outcome = typeof ${name};\n`,
    );
  }
  const alone = (file) =>
    `<script type="importmap">{ "imports": { "abp-bridge": "${file}" } }</script>`;
  const policy = `<meta http-equiv="content-security-policy" content="script-src 'self' 'unsafe-inline'">`;
  for (const file of ALONE) {
    const name = basename(file);
    writeFileSync(join(project, `${name}.html`), pageOf('/bundle.js', alone(file)));
    writeFileSync(join(project, `${name}-strict.html`), pageOf('/bundle.js', policy + alone(file)));
  }
  writeFileSync(
    join(project, 'bundle.js'),
    "import { smoke } from './smoke.js';\nglobalThis.outcome = await smoke().catch(String);\n",
  );
  pages = await openPages(project);
});
after(async () => {
  await pages?.close();
  rmSync(project, { recursive: true, force: true });
});

const inNode = (script) =>
  execFileSync('node', ['--input-type=module', '-e', script], { cwd: project, encoding: 'utf8' });

test('in Node', () => {
  assert.equal(inNode("import './main.js'; console.log(await outcome);").trim(), EXPECTED);
});

test('a stream is read, and left in its midst', () => {
  const said = inNode(`
    import { connect, expose } from 'abp-bridge';
    const { port1, port2 } = new MessageChannel();
    let ended;
    const unwound = new Promise((resolve) => (ended = resolve));
    async function* count({ to }) {
      try {
        for (let n = 1; n <= to; n++) yield n;
        return 'all';
      } finally {
        ended();
      }
    }
    const about = { id: 'a', name: 'A', version: '1' };
    const app = expose({ app: about, capabilities: { count } }, { port: port1 });
    const client = await connect(port2, { agent: { name: 'a', version: '1' } });
    const all = client.stream('count', { to: 3 });
    const chunks = [];
    for await (const n of all) chunks.push(n);
    const { data } = await all.response;
    const left = client.stream('count', { to: 1e9 });
    for await (const n of left) if (n === 2) break;
    await unwound;
    const { cancelled } = await left.response;
    console.log(JSON.stringify([chunks, data, cancelled]));
    client.close();
    app.close();
  `);
  assert.deepEqual(JSON.parse(said), [[1, 2, 3], 'all', true]);
});

test('a page that Playwright drives is called and left', async () => {
  const page = await pages.browser.newPage();
  await page.goto(`${pages.url}/app.html`);
  const { connectPage } = await import(
    join(project, installed('@abp-bridge/automation'), 'lib/index.js')
  );
  const client = await connectPage(page, { agent: { name: 'driver', version: '1' } });
  assert.equal((await client.call('number.add', { a: 20, b: 22 })).data, 42);
  client.close();
  await page.close();
});

test('every entry can be imported in Node, and by name from TypeScript', () => {
  const consumer = readFileSync(join(root, 'tests/types/consumer.ts'), 'utf8');
  const script = `for (const entry of ${JSON.stringify(entries)})
    console.log(entry, Object.keys(await import(entry)).length > 0);`;
  const expected = entries.map((entry) => `${entry} true\n`);
  assert.equal(inNode(script), expected.join(''));
  for (const entry of entries)
    assert.ok(consumer.includes(`from '${entry}';`), `consumer.ts does not import ${entry}`);
});

test('its package.json can be read, and each declaration finds those that it names', () => {
  const version =
    "import about from 'abp-bridge/package.json' with { type: 'json' }; console.log(about.name);";
  assert.equal(inNode(version).trim(), 'abp-bridge');
  for (const { name: package_, entries } of PACKAGES) {
    if (!Object.keys(entries).length) continue;
    const types = join(project, installed(package_), 'types');
    const names = readdirSync(types, { recursive: true }).filter((name) => name.endsWith('.ts'));
    assert.ok(names.length >= Object.keys(entries).length, package_);
    for (const name of names) {
      const text = readFileSync(join(types, name), 'utf8');
      for (const [, other] of text.matchAll(/(?:from |import\()['"](\.[^'"]+)\.js['"]/g)) {
        assert.ok(existsSync(join(types, dirname(name), `${other}.d.ts`)), `${name}: ${other}`);
      }
    }
  }
});

// What belongs to a neighbour is in the neighbour's package: such a link leads there in the
// repository and on the site, which has a test of its own.
test('what its README and its documents link to is in it, or of a neighbour', () => {
  const folder = join(project, 'node_modules/abp-bridge');
  const documents = readdirSync(join(folder, 'docs')).map((name) => `docs/${name}`);
  const top = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'];
  for (const name of [...top, ...documents].filter((path) => path.endsWith('.md'))) {
    const links = readFileSync(join(folder, name), 'utf8').matchAll(/\]\(([^)#]+)/g);
    for (const [, link] of links) {
      if (/^https?:/.test(link)) continue;
      const path = join(dirname(name), link);
      const place = path.startsWith('packages/') ? root : folder;
      assert.ok(existsSync(join(place, path)), `${name} links to ${link}`);
    }
  }
});

test('in a page without a bundler', async () => {
  assert.equal(await pages.outcomeOf('/direct.html'), EXPECTED);
});

for (const [side, name] of [
  ['app', 'expose'],
  ['agent', 'connect'],
]) {
  test(`in a page without a bundler, an ${side} is at most four files, asked for at once`, async () => {
    pages.requested.length = 0;
    const outcome = await pages.outcomeOf(`/${name}.html`);
    assert.equal(outcome, 'function');
    const files = pages.requested.filter((path) => path.includes('/dist/'));
    assert.ok(files.length > 1 && files.length <= 4, files.join('\n'));
    // What the page's own modules import statically, and nothing that waits for one of them to run.
    const first = readFileSync(join(project, 'node_modules/abp-bridge/dist/page/abp-bridge.js'));
    const named = [...String(first).matchAll(/["']\.\/([^"']+\.js)["']/g)].map(([, file]) => file);
    assert.deepEqual(
      files.map((path) => path.split('/').at(-1)).sort(),
      ['abp-bridge.js', ...named].sort(),
    );
  });
}

for (const file of ALONE) {
  for (const [what, ending] of [
    ['', ''],
    [' that forbids WebAssembly', '-strict'],
  ]) {
    test(`in a page${what}, as ${basename(file)}, which loads no other`, async () => {
      pages.requested.length = 0;
      const path = `/${basename(file)}${ending}.html`;
      assert.equal(await pages.outcomeOf(path), SMOKE);
      const files = pages.requested.filter((path) => path.includes('/dist/'));
      assert.deepEqual(files, [file]);
    });
  }
}

test('files that need no other may stand in a document, and what wraps tools of others is at most 3 KB', () => {
  const textOf = (package_, name) =>
    readFileSync(join(project, installed(package_), `page/${name}.js`), 'utf8');
  for (const { name: package_, singles } of PACKAGES) {
    for (const name of Object.keys(singles))
      assert.doesNotMatch(textOf(package_, name), /<\/script/i, name);
  }
  const { length } = gzipSync(textOf('@abp-bridge/webmcp', 'settled'), { level: 9 });
  assert.ok(length <= 3072, `${length} bytes`);
});

test('for Cloudflare Workers, whose modules of WebAssembly are imported and not compiled', async () => {
  const compiled = {
    name: 'compiled',
    setup: ({ onLoad }) =>
      onLoad({ filter: /\.wasm$/ }, ({ path }) => ({
        contents: `export default new WebAssembly.Module(Buffer.from('${readFileSync(path, 'base64')}', 'base64'));`,
      })),
  };
  await build({
    stdin: {
      contents: `import { createPeer } from '@abp-bridge/rpc';
        import { smoke } from './smoke.js';
        WebAssembly.compile = WebAssembly.compileStreaming = WebAssembly.instantiate = undefined;
        console.log(typeof createPeer, await smoke());`,
      resolveDir: project,
    },
    bundle: true,
    format: 'esm',
    platform: 'node',
    conditions: ['workerd'],
    outfile: join(project, 'worker.js'),
    plugins: [compiled],
  });
  assert.equal(inNode("await import('./worker.js');").trim(), `function ${SMOKE}`);
});

for (const [package_, folder, entries, singles] of PACKAGES.flatMap(
  ({ name, modules, pages, singles }) => [
    [name, 'lib', modules, singles],
    [name, 'page', pages, singles],
  ],
)) {
  if (!Object.keys(entries).length) continue;
  test(`each file of dist/${folder} of ${package_} has its source map with the sources inside`, () => {
    const built = join(project, installed(package_), folder);
    const names = readdirSync(built, { recursive: true }).filter(
      // What was made from C has no source to lead to, that of copies is in another map, and files
      // that stand alone are not to be read.
      (name) =>
        /\.js$/.test(name) &&
        !/-(js|wasm|door)\b|\blater-|bundle/.test(name) &&
        !Object.hasOwn(singles, name.slice(0, -3).replaceAll('\\', '/')),
    );
    assert.ok(names.length >= Object.keys(entries).length);
    for (const name of names) {
      const [, map] = /\n\/\/# sourceMappingURL=(.+)\n$/.exec(
        readFileSync(join(built, name), 'utf8'),
      );
      const { sources, sourcesContent } = JSON.parse(
        readFileSync(join(built, dirname(name), map), 'utf8'),
      );
      assert.equal(sources.length, sourcesContent.length);
    }
  });
}

/** What it says, which is nothing if it has nothing to warn of. */
function bundle(command, ...args) {
  const { status, stdout, stderr } = spawnSync(bin(command), args, {
    cwd: project,
    encoding: 'utf8',
  });
  assert.deepEqual({ status, said: stdout + stderr }, { status: 0, said: '' });
}

test('through esbuild', async () => {
  const args = ['--bundle', '--splitting', '--format=esm', '--outdir=out', '--log-level=warning'];
  bundle('esbuild', 'main.js', 'retry.js', ...args);
  assert.equal(await pages.outcomeOf('/esbuild.html'), EXPECTED);
});

test('a part that does not load fails what needs it with a typed error, and is tried again', async () => {
  const page = await pages.browser.newPage();
  const blocked = { wasm: /abp-wasm/, parts: /schema-/ };
  for (const pattern of Object.values(blocked)) await page.route(pattern, (route) => route.abort());
  await page.goto(`${pages.url}/retry.html`);
  await page.waitForFunction(() => globalThis.agent);
  const connecting = () => page.evaluate(() => globalThis.agent());
  assert.deepEqual(await connecting(), ['TRANSPORT_ERROR', true]);
  await page.unroute(blocked.wasm);
  // The handler's schema is checked by what is still missing.
  assert.deepEqual(await connecting(), ['TRANSPORT_ERROR', true]);
  await page.unroute(blocked.parts);
  assert.equal(await connecting(), 42);
  await page.close();
});

test('through Vite', async () => {
  // It warns of what takes long, as all does on a busy machine.
  const checks = '{ build: { rolldownOptions: { checks: { bundlerTimings: false } } } }';
  writeFileSync(join(project, 'vite.config.js'), `export default ${checks};`);
  bundle('vite', 'build', '--logLevel', 'warn', '--base', '/dist/');
  assert.equal(await pages.outcomeOf('/dist/index.html'), EXPECTED);
});

test('through Vite with the plugin, the core is asked for before a script that needs it has come', async () => {
  const names = ['expose', 'connect', 'lazy'];
  const lazy = "import('./panel.js').catch(() => (globalThis.outcome = 'missing'));";
  writeFileSync(join(project, 'lazy.js'), lazy);
  writeFileSync(
    join(project, 'panel.js'),
    "import { connect } from 'abp-bridge';\nconsole.log(connect);\n",
  );
  for (const name of names)
    writeFileSync(join(project, `early-${name}.html`), pageOf(`/${name}.js`));
  writeFileSync(
    join(project, 'early.config.js'),
    `import { abpBridge } from 'abp-bridge/vite';
     const input = ${JSON.stringify(names.map((name) => `early-${name}.html`))};
     const resolveDependencies = (_file, files) => [...files, 'own.js'];
     export default {
       base: '/early/',
       plugins: [abpBridge({ schemas: true })],
       build: {
         outDir: 'early',
         modulePreload: { resolveDependencies },
         rolldownOptions: { input, checks: { bundlerTimings: false } },
       },
     };`,
  );
  bundle('vite', 'build', '--config', 'early.config.js', '--logLevel', 'warn');
  const assets = `${pages.url}/early/assets/`;
  for (const name of names) {
    const page = await pages.browser.newPage();
    const asked = new Set();
    // What needs the core never comes: so it is not what asks.
    const needs = name === 'lazy' ? /\/panel-/ : /\/early-\w+-/;
    await page.route(/\/early\/.*\.js$/, (route) => {
      const url = route.request().url();
      asked.add(url.replace(assets, '').replace(/-[\w-]{8}\.js$/, ''));
      return needs.test(url) ? route.abort() : route.continue();
    });
    await page.goto(`${pages.url}/early/early-${name}.html`);
    if (name === 'lazy') await page.waitForFunction(() => globalThis.outcome === 'missing');
    const early = [
      'abp-wasm',
      ...(name === 'expose' ? ['schema', 'app-parts', 'later-common'] : []),
    ];
    for (const file of early) assert.ok(asked.has(file), `${name}: ${[...asked]}`);
    assert.ok(asked.has(`${pages.url}/early/own.js`), 'what the configuration adds is kept');
    await page.close();
    if (name !== 'lazy')
      assert.equal(await pages.outcomeOf(`/early/early-${name}.html`), 'function');
  }
});

test('the program of the inspector plays a recording', () => {
  const recording = join(root, 'tests/core/recordings/session.jsonl');
  const said = execFileSync(join(project, 'node_modules/.bin/abp-replay'), [recording]);
  assert.match(String(said), /the same: \d+ inputs/);
});
