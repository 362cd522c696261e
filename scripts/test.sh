#!/usr/bin/env bash
# Everything that must hold. Sets up and builds what is missing first.
set -euo pipefail
cd "$(dirname "$0")/.."
step() { printf '\n== %s\n' "$*"; }

step 'set up and build'
scripts/build.sh wasm test
step 'layout and lint'
scripts/format.sh --check
npx --no-install eslint .
npx --no-install tsc -p .
cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability --inline-suppr \
  --suppress=missingIncludeSystem -I src src wasm

# What computes (C, fuzzing) goes beside what waits (Node, browsers): two cores do both in the time of the longer.
c_tests() {
  step 'C, under AddressSanitizer and UndefinedBehaviorSanitizer'
  ctest --test-dir build/test --output-on-failure
  step 'coverage of src/'
  scripts/coverage.sh
  step 'fuzzing, a little of it: npm run fuzz is the long run'
  scripts/fuzz.sh short
}

# Every engine, with the core as WebAssembly and, under a policy that forbids it, as JavaScript. Browsers
# wait often, so several runs share what is left.
browser_tests() {
  step 'Chromium, Firefox and WebKit'
  printf '%s\n' 'firefox wasm' 'firefox js' 'chromium wasm' 'chromium js' 'webkit wasm' 'webkit js' |
    xargs -P3 -L1 bash -c 'engine "$@"' engine
}
engine() {
  local log=build/browser-$1-$2.log
  local files=(tests/browser/{transcripts,session,trust,faults,websocket,workers,a2a}.test.js)
  # What other people's packages do is theirs to test in every engine.
  [ "$1" != chromium ] || files+=(tests/browser/rpc.test.js)
  if ENGINE=$1 CORE=$2 node --test --test-concurrency=1 "${files[@]}" >"$log" 2>&1; then
    echo "$1, core as $2: $(sed -n 's/^# pass //p' "$log") passed"
  else
    cat "$log"
    return 1
  fi
}
export -f engine

(set -e; c_tests) >build/c-tests.log 2>&1 &
c_tests=$!
trap 'kill $c_tests 2>/dev/null || true' EXIT
failed=
step 'Node, the demo, and the package as a stranger gets it'
node --test --test-concurrency=2 tests/plain tests/node tests/differential tests/soak tests/interop tests/package \
  tests/browser/{demo,discover,automation}.test.js || failed=1
step 'Node without WebAssembly'
NODE_OPTIONS="--import $PWD/tests/support/no-wasm.js" node --test --test-reporter=dot tests/node || failed=1
browser_tests || failed=1
wait $c_tests || failed=1
cat build/c-tests.log
[ -z "$failed" ] || { printf '\nsomething failed: see above\n'; exit 1; }
