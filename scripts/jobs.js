/**
 * The jobs of scripts/test.js, in three circles: those of a circle that take longest first. Each is
 * a line for bash. CONTRIBUTING.md has a table of what they cost.
 */

// A test that hangs ends the run, but late: a busy machine makes tests slow, and this is for all
// tests of a file together.
const options = '--test --test-timeout=3600000 --test-reporter=spec --test-concurrency=2';
const tests = (/** @type {string} */ files) => `node ${options} ${files}`;
/**
 * @param {string} engine
 * @param {string} suites of tests/browser/engine.js; all but these, if it begins with `not`
 */
const browser = (engine, suites, core = 'wasm') =>
  `ENGINE=${engine} CORE=${core} SUITES='${suites}' ${tests('tests/browser/engine.js')}`;
const ctest = (/** @type {string} */ circle) =>
  `ctest --test-dir build/test -j2 --timeout 3600 --output-on-failure ${circle}`;
const onePass = (/** @type {string} */ project) => `npx --no-install tsc -p ${project}`;

// The gateway starts browsers, so it is a job of its own.
const units = 'tests/node/*.test.js packages/[!g]*/tests/*.test.js';
/** Those of them that take longest: many histories, threads, tasks, sockets or arbitrary values. */
const long = `membership memory server store lists client short-memory pool waiting costs properties
  repeats byte-streams bounds discover instance key-reused last-words patched plain-data`;
/**
 * What the gateway does on a longer day: several windows, a browser of somebody else, what it has
 * learnt.
 */
const longDay = 'apps attach bundle call day handed-over learnt serve share windows';
const gateway = 'packages/gateway/tests/*.test.js';
const chosen =
  (/** @type {string} */ option) => (/** @type {string} */ files, /** @type {string} */ names) =>
    tests(`$(ls ${files} | grep ${option} '/(${names.split(/\s+/).join('|')})[.]test[.]js$')`);
const only = chosen('-E');
const except = chosen('-vE');
/** What a page's life, what calls are told, and the rules of the protocol depend on. */
const telling = 'session outcomes transcripts';
/** Suites of packages, in pages. */
const packages = 'a2a mcp-apps rpc keys';
const withoutWasm = 'NODE_OPTIONS="--import $PWD/tests/support/no-wasm.js"';
/**
 * The versions of Node that are supported, from npm. In the one that is installed, all tests run.
 */
const otherNodes = Object.fromEntries(
  [20, 22, 24]
    .filter((version) => !process.versions.node.startsWith(`${version}.`))
    .map((version) => [
      `node-${version}`,
      `npx --yes --package=node@${version} -- ${tests(units)}`,
    ]),
);

/** `npm test`: whether it works. @type {Record<string, string>} */
const working = {
  node: except(units, long),
  lint: `npx --no-install oxlint
    ${['tsconfig.check.json', 'tsconfig.names.json', 'scripts'].map(onePass).join('\n')}
    cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability --inline-suppr \\
      --suppress=missingIncludeSystem -I src src wasm packages/inspector/replay
    git ls-files '*.[ch]' | xargs clang-format --dry-run -Werror`,
  package: `COMPILERS=typescript ${tests('tests/package/{package,compilers}.test.js')}`,
  // Under AddressSanitizer and UndefinedBehaviorSanitizer, except the explorations.
  c: ctest("--label-exclude 'landing|long'"),
  chromium: browser('chromium', 'session trust outcomes'),
  demo: tests('tests/browser/demo.test.js'),
  size: tests('tests/size/*.test.js'),
};

/** What a landing must pass besides (`.ci/run`). @type {Record<string, string>} */
const landing = {
  firefox: browser('firefox', telling),
  'chromium-rest': browser('chromium', `not session trust outcomes ${packages}`),
  gateway: except(gateway, longDay),
  'node-long': only(units, long),
  webkit: browser('webkit', telling),
  interop: tests('tests/interop/*.test.js packages/*/tests/interop/*.test.js'),
  automation: tests('packages/*/tests/browser/automation.test.js'),
  webmcp: tests('packages/*/tests/browser/webmcp.test.js'),
  effects: tests('tests/effects/*.test.js'),
  'c-landing': ctest('-L landing'),
  differential: tests('tests/differential/*.test.js'),
  discover: tests('tests/browser/discover.test.js'),
  format:
    'npx --no-install prettier --check --log-level warn --cache --cache-location build/prettier .',
};

/**
 * What is tried before an issue is called done, and before a release (`npm run test:all`).
 * @type {Record<string, string>}
 */
const rest = {
  'gateway-rest': only(gateway, longDay),
  fleet: tests('packages/a2a-store/tests/fleet/*.test.js'), // with real NATS servers
  frameworks: tests('tests/browser/{apps,frameworks}.test.js'),
  inspector: tests('packages/*/tests/browser/inspector.test.js'),
  extension: tests('packages/*/tests/browser/extension.test.js tests/browser/extension.test.js'),
  'package-rest': `COMPILERS=typescript-5 ${tests('tests/package/{compilers,samples,tools}.test.js')}`,
  'chromium-packages': browser('chromium', packages),
  'c-long': ctest('-L long'),
  'firefox-rest': browser('firefox', `not ${telling}`),
  'webkit-rest': browser('webkit', `not ${telling}`),
  // Those with node:sqlite run the suites of backends and of stores over SQLite, which Node 20 runs
  // over memory alone.
  ...otherNodes,
  coverage: `scripts/coverage.sh\nnpx --no-install c8 ${tests(units)}`,
  many: `FC_RUNS=300 FLOOD=1000000 FLEET_HISTORIES=200 ${tests('tests/node/{properties,hostile}.test.js packages/a2a-store/tests/membership.test.js')}`,
  // The core as JavaScript, in pages that forbid WebAssembly. It is the same core
  // (tests/differential): what an engine decides is how it is loaded and how it runs; in Chromium,
  // what else such pages forbid.
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

/** Long, or with downloads: by name alone. @type {Record<string, string>} */
const others = {
  'chromium-js-long': browser('chromium', '', 'js'),
  'firefox-js-long': browser('firefox', '', 'js'),
  'webkit-js-long': browser('webkit', '', 'js'),
  'node-js-long': `${withoutWasm} ${tests(units)}`,
  'gateway-peers': tests('packages/gateway/tests/peers/*.test.js'), // downloads 300 MB, once
};

/** All jobs: what bash runs, under `-euo pipefail`, by name. @type {Record<string, string>} */
export const jobs = Object.assign({}, ...Object.values(circles), others);
