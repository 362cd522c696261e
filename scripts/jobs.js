/**
 * The jobs of scripts/test.js, those that take longest first. Each is a line for bash.
 *
 * @typedef {object} Job
 * @property {string} run what bash runs, under `-euo pipefail`
 * @property {true} [quick] it is one of those that tell whether it works (`npm test`)
 * @property {true} [all] it is one of those before a release (`npm run test:all`)
 * @property {true} [once] nothing in it waits for anything, so it is not tried again when it has failed
 */
const quick = true;
const all = true;
const once = true;

// A test that hangs ends the run, but late: a busy machine makes tests slow.
const options = '--test --test-timeout=900000 --test-reporter=spec --test-concurrency=2';
const tests = (/** @type {string} */ files) => `node ${options} ${files}`;
const browser = (/** @type {string} */ engine, /** @type {string} */ core, suites = '') =>
  `ENGINE=${engine} CORE=${core} SUITES='${suites}' ${tests('tests/browser/engine.js')}`;
const ctest = 'ctest --test-dir build/test -j2 --timeout 3600 --output-on-failure';

// The gateway starts browsers, so it is a job of its own.
const units = 'tests/node/*.test.js packages/[!g]*/tests/*.test.js';

/** Each version of Node that is supported. The job `node` runs all tests in the one that is installed. */
const NODE_VERSIONS = [20, 22, 24];
/** The tests whose outcome a version of Node may decide, by what of Node they use. The others are run once, by `node`. */
export const perNodeVersion = [
  // its engine: WebAssembly, memory, the collector of garbage, the order of what is awaited
  ...inFolder('tests/node', 'binary bounds driver instance leaks reentrancy'),
  // ports, and clones of values
  ...inFolder('tests/node', 'hostile properties session-values transcripts transports values'),
  // threads, processes, contexts, and how modules are loaded
  ...inFolder('tests/node', 'process recipes session-refusals workerd workers'),
  ...inFolder('packages/workers/tests', 'pool waiting'),
  ...inFolder('packages/rpc/tests', 'port-channel'),
  ...inFolder('packages/a2a/tests', 'module-scope'),
  // streams, signals and timers
  ...inFolder('tests/node', 'chunks invoke limits session-input session-streams'),
  ...inFolder('packages/rpc/tests', 'byte-streams partial-results peers'),
  // servers, sockets and fetch
  ...inFolder('tests/node', 'websocket'),
  ...inFolder(
    'packages/a2a/tests',
    'access client endpoints http-json lasting memory push requests server',
  ),
  ...inFolder('packages/automation/tests', 'discover'),
  // its database
  ...inFolder('packages/a2a/tests', 'backends lists store'),
  ...inFolder('packages/keys/tests', 'sqlite'),
];
/** @param {string} folder @param {string} names of test files, between spaces */
function inFolder(folder, names) {
  return names.split(' ').map((name) => `${folder}/${name}.test.js`);
}
/** Node comes from npm. Arbitrary values and floods are the same in each, so a few show that they arrive. */
const otherNode = (/** @type {number} */ version) =>
  process.versions.node.startsWith(`${version}.`)
    ? `echo 'the job node runs in this version'`
    : `FC_RUNS=50 FLOOD=10000 npx --yes --package=node@${version} -- ${tests(perNodeVersion.join(' '))}`;
const withoutWasm = 'NODE_OPTIONS="--import $PWD/tests/support/no-wasm.js"';

/** @type {Record<string, Job>} */
export const jobs = {
  chromium: { run: browser('chromium', 'wasm'), all },
  firefox: { run: browser('firefox', 'wasm'), all },
  webkit: { run: browser('webkit', 'wasm'), all },
  node: { run: `npx --no-install c8 ${tests(units)}`, quick, all },
  // The most telling part: calls, cancels, the end of a page, and strangers that are refused.
  'chromium-short': { run: browser('chromium', 'wasm', 'session trust websocket'), quick },
  'c-short': { run: `${ctest} --label-exclude long`, quick, once },
  lint: {
    run: `scripts/format.sh --check
      npx --no-install eslint .
      npx --no-install oxlint --quiet # what needs types: no promise is left to itself
      for project in . packages/gateway scripts demo; do npx --no-install tsc -p "$project"; done
      cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability --inline-suppr \\
        --suppress=missingIncludeSystem -I src src wasm packages/inspector/replay`,
    quick,
    all,
    once,
  },
  // Under AddressSanitizer and UndefinedBehaviorSanitizer, except the explorations.
  c: { run: `${ctest} --label-exclude short`, all, once },
  reach: { run: tests('tests/reach/*.test.js'), all },
  automation: { run: tests('packages/*/tests/browser/automation.test.js'), all },
  webmcp: { run: tests('packages/*/tests/browser/webmcp.test.js'), all },
  inspector: { run: tests('packages/*/tests/browser/inspector.test.js'), all },
  extension: { run: tests('packages/*/tests/browser/extension.test.js'), all },
  frameworks: { run: tests('packages/frameworks/tests/browser/*.test.js'), all },
  gateway: { run: tests('packages/gateway/tests/*.test.js'), all },
  site: { run: tests('tests/browser/site.test.js'), all },
  fleet: { run: tests('packages/a2a/tests/fleet/*.test.js'), all }, // with real NATS servers
  // The core as JavaScript, in pages that forbid WebAssembly. It is the same core (tests/differential): what an engine
  // decides is how it is loaded and how it runs; in Chromium, what else such pages forbid.
  'chromium-js': { run: browser('chromium', 'js', 'transcripts session trust workers'), all },
  'firefox-js': { run: browser('firefox', 'js', 'transcripts session'), all },
  'webkit-js': { run: browser('webkit', 'js', 'transcripts session'), all },
  'node-js': {
    run: `${withoutWasm} ${tests('tests/node/{driver,instance,transcripts,reentrancy,leaks}.test.js packages/workers/tests/pool.test.js')}`,
    all,
  },
  // Those with node:sqlite run the suites of backends and of stores over SQLite, which `node` runs over memory alone.
  ...Object.fromEntries(
    NODE_VERSIONS.map((version) => [`node-${version}`, { run: otherNode(version), all }]),
  ),
  coverage: { run: 'scripts/coverage.sh', all, once },
  fuzz: { run: 'scripts/fuzz.sh short', all, once }, // a little of it: npm run fuzz is the long run
  differential: { run: tests('tests/differential/*.test.js'), all },
  effects: { run: tests('tests/effects/*.test.js'), all },
  package: { run: tests('tests/package/*.test.js'), quick, all },
  size: { run: tests('tests/size/*.test.js'), quick, all },
  interop: { run: tests('tests/interop/*.test.js packages/*/tests/interop/*.test.js'), all },
  discover: { run: tests('packages/*/tests/browser/discover.test.js'), all },
  soak: { run: tests('tests/soak/*.test.js'), all },
  // A few lines of what was tried, others in each commit: the seed is printed, and repeats a run.
  mutants: {
    run: 'node tests/mutation/mutate.js tried --sample 12 --seed "${SEED:-$(git rev-list --count HEAD)}"',
    all,
  },
  demo: { run: tests('tests/browser/demo.test.js'), quick, all },

  // Long, or with downloads: by name alone.
  'chromium-js-long': { run: browser('chromium', 'js') },
  'firefox-js-long': { run: browser('firefox', 'js') },
  'webkit-js-long': { run: browser('webkit', 'js') },
  'node-js-long': { run: `${withoutWasm} ${tests(units)}` },
  'gateway-peers': { run: tests('packages/gateway/tests/peers/*.test.js') }, // downloads 300 MB, once
};

/** @param {'quick' | 'all'} set @returns {string[]} the jobs that are in it */
export const jobsIn = (set) => Object.keys(jobs).filter((name) => jobs[name][set]);
