/**
 * The jobs of scripts/test.js, in three circles, the longest of each first. Each is a line for
 * bash. scripts/costs.json has their costs.
 */

// A test that hangs ends the run, but late: a busy machine makes tests slow, and this limit is for
// all tests of a file together.
const options = '--test --test-timeout=3600000 --test-reporter=spec --test-concurrency=2';
const tests = (/** @type {string} */ files) => `node ${options} ${files}`;
/**
 * @param {string} engine
 * @param {string} suites of tests/browser/engine.js; all except these, if it begins with `not`
 */
const browser = (engine, suites, core = 'wasm') =>
  `ENGINE=${engine} CORE=${core} SUITES='${suites}' ${tests('tests/browser/engine.js')}`;
const ctest = (/** @type {string} */ circle) =>
  `ctest --test-dir build/test -j2 --timeout 3600 --output-on-failure ${circle}`;
const onePass = (/** @type {string} */ project) => `npx --no-install tsc -p ${project}`;

// The gateway starts browsers, so it is a job of its own.
const units = 'tests/node/*.test.js packages/[!g]*/tests/*.test.js';
/**
 * The longest of them, or those that few changes can break: many histories, threads, tasks, sockets
 * or arbitrary values; floods, every limit, processes of their own.
 */
const long = `membership memory tasks store lists client-input short-memory pool waiting costs properties
  repeats-joined keys byte-streams bounds discover discover-hostile discover-addresses manifest
  instance key-reused last-words patched plain-data workers recipes unreadable limits hostile
  websocket-hostile websocket-fails process stream-ends left-behind lies`;
/** Those of `packages/stopcheck` that its own changes alone can break. */
const pressed = 'honest reported witnesses';
/**
 * Those that need a process of their own: what they look at is loaded once, or counted, or their
 * clock runs ahead.
 */
const alone = 'capabilities chunks driver errors first-use leaks path';
/** The gateway's longer tests: windows, pages that hang, a foreign browser, remembered tools. */
const longDay =
  'apps attach bundle call day earlier handed-over hung learnt login serve share windows';
const gateway = 'packages/gateway/tests/*.test.js';
/**
 * @param {string} option of grep
 * @returns {(files: string, names: string) => string} bash that lists those of the files that have
 *   one of the names, or have none of them
 */
const chosen = (option) => (files, names) =>
  `ls ${files} | grep ${option} '/(${names.split(/\s+/).join('|')})[.]test[.]js$'`;
const named = chosen('-E');
const notNamed = chosen('-vE');
const only = (/** @type {string} */ files, /** @type {string} */ names) =>
  tests(`$(${named(files, names)})`);
const except = (/** @type {string} */ files, /** @type {string} */ names) =>
  tests(`$(${notNamed(files, names)})`);
/** Fourteen files a process: most take less than to start Node and to load the core. */
const together = (/** @type {string} */ list) =>
  `${list} | timeout 3600 xargs -n 14 node --test-reporter=spec tests/support/together.js`;
/** Suites on a page's life, reports of calls, and the rules of the protocol. */
const telling = 'session outcomes transcripts';
/** Suites of packages, in pages. */
const inPages = 'a2a mcp-apps rpc keys';
const withoutWasm = 'NODE_OPTIONS="--import $PWD/tests/support/no-wasm.js"';
/**
 * The supported versions of Node, from npm. All tests run in the installed one.
 */
const otherNodes = Object.fromEntries(
  [20, 22, 24]
    .filter((version) => !process.versions.node.startsWith(`${version}.`))
    .map((version) => [
      `node-${version}`,
      `npx --yes --package=node@${version} -- ${tests(units)}`,
    ]),
);

/** `npm test`: the basic checks. @type {Record<string, string>} */
const working = {
  node: `${only(units, alone)}
    ${together(notNamed(units, `${long} ${alone} ${pressed}`))}`,
  lint: `npx --no-install oxlint
    ${['tsconfig.check.json', 'tsconfig.names.json', 'scripts'].map(onePass).join('\n')}
    cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability --inline-suppr \\
      --suppress=missingIncludeSystem -I src src wasm packages/inspector/replay
    git ls-files '*.[ch]' | xargs clang-format --dry-run -Werror`,
  package: tests('tests/package/package.test.js'),
  // Under AddressSanitizer and UndefinedBehaviorSanitizer, except the explorations.
  c: ctest("--label-exclude 'landing|long'"),
  chromium: browser('chromium', 'session trust'),
  demo: tests('tests/browser/demo.test.js'),
  size: tests('tests/size/*.test.js'),
};

/** Further requirements of a landing (`.ci/run`). @type {Record<string, string>} */
const landing = {
  firefox: browser('firefox', telling),
  'chromium-rest': browser('chromium', `not session trust ${inPages}`),
  gateway: except(gateway, longDay),
  'node-long': only(units, long),
  webkit: browser('webkit', telling),
  'package-landing': `COMPILERS=typescript ${tests('tests/package/compilers.test.js')}`,
  interop: tests('tests/interop/*.test.js packages/*/tests/interop/*.test.js'),
  automation: tests('packages/*/tests/browser/{automation,plain-apps}.test.js'),
  webmcp: tests('packages/*/tests/browser/webmcp.test.js'),
  effects: tests('tests/effects/*.test.js'),
  'c-landing': ctest('-L landing'),
  differential: tests('tests/differential/*.test.js'),
  format:
    'npx --no-install prettier --check --log-level warn --cache --cache-location build/prettier .',
};

/**
 * Run before an issue is called done, and before a release (`npm run test:all`).
 * @type {Record<string, string>}
 */
const rest = {
  'gateway-rest': only(gateway, longDay),
  fleet: tests('packages/a2a-store/tests/fleet/*.test.js'), // with real NATS servers
  discover: tests('tests/browser/discover.test.js'), // tests/node has discovery and manifests, too
  frameworks: tests('tests/browser/{apps,frameworks}.test.js'),
  inspector: tests('packages/*/tests/browser/inspector.test.js'),
  extension: tests('packages/*/tests/browser/extension.test.js tests/browser/extension.test.js'),
  stopcheck: `${only(units, pressed)}
    ${tests('packages/stopcheck/tests/browser/*.test.js')}`,
  'package-rest': `COMPILERS=typescript-5 ${tests('tests/package/{alone,compilers,samples,tools}.test.js')}`,
  'chromium-packages': browser('chromium', inPages),
  'c-long': ctest('-L long'),
  'firefox-rest': browser('firefox', `not ${telling}`),
  'webkit-rest': browser('webkit', `not ${telling}`),
  // Versions with node:sqlite run the suites of backends and of stores over SQLite, which Node 20
  // runs over memory alone.
  ...otherNodes,
  coverage: `scripts/coverage.sh\nnpx --no-install c8 --config .ci/coverage.json ${tests(units)}`,
  many: `FC_RUNS=300 FLOOD=1000000 FLEET_HISTORIES=200 ${tests('tests/node/{properties,hostile}.test.js packages/a2a-store/tests/membership.test.js')}`,
  // The core as JavaScript, in pages that forbid WebAssembly. It is the same core
  // (tests/differential): an engine affects only how it is loaded and how it runs; in Chromium,
  // also the other restrictions of such pages.
  'chromium-js': browser('chromium', `${telling} trust workers`, 'js'),
  'firefox-js': browser('firefox', telling, 'js'),
  'webkit-js': browser('webkit', telling, 'js'),
  'node-js': `${withoutWasm} ${tests('tests/node/{driver,transcripts,reentrancy,leaks,pool}.test.js')}`,
  fuzz: 'scripts/fuzz.sh short', // a little of it: npm run fuzz is the long run
  reach: tests('tests/reach/*.test.js'),
  bench: 'node tests/bench/bench.js --quick', // that it runs: its numbers mean nothing
  site: tests('tests/browser/site.test.js'),
  soak: tests('tests/soak/*.test.js'),
  toolchains: 'scripts/toolchains.sh || [ $? = 2 ]', // 2: they cannot be had here
};

/** Each includes those before it. @type {Record<string, Record<string, string>>} */
export const circles = { working, landing, rest };

/** Long, or with downloads: run by name alone. @type {Record<string, string>} */
const byName = {
  'chromium-js-long': browser('chromium', '', 'js'),
  'firefox-js-long': browser('firefox', '', 'js'),
  'webkit-js-long': browser('webkit', '', 'js'),
  'node-js-long': `${withoutWasm} ${tests(units)}`,
  'gateway-peers': tests('packages/gateway/tests/peers/*.test.js'), // downloads 300 MB, once
};

/** All jobs, by name: lines for bash, under `-euo pipefail`. @type {Record<string, string>} */
export const jobs = Object.assign({}, ...Object.values(circles), byName);
