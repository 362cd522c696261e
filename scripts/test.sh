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
step 'C, under AddressSanitizer and UndefinedBehaviorSanitizer'
ctest --test-dir build/test --output-on-failure -j2
step 'coverage of src/'
scripts/coverage.sh
step 'fuzzing, a little of it: npm run fuzz is the long run'
scripts/fuzz.sh short
step 'Node, the demo, and the package as a stranger gets it'
node --test --test-concurrency=2 tests/plain tests/node tests/differential tests/soak tests/package tests/browser/{demo,discover}.test.js
step 'Node without WebAssembly'
NODE_OPTIONS="--import $PWD/tests/support/no-wasm.js" node --test --test-reporter=dot tests/node

# Every engine, with the core as WebAssembly and, under a policy that forbids it, as JavaScript. Browsers
# wait often, so three runs share two cores.
step 'Chromium, Firefox and WebKit'
engine() {
  local log=build/browser-$1-$2.log
  if ENGINE=$1 CORE=$2 node --test --test-concurrency=1 tests/browser/{transcripts,session,trust,faults}.test.js >"$log" 2>&1; then
    echo "$1, core as $2: $(sed -n 's/^# pass //p' "$log") passed"
  else
    cat "$log"
    return 1
  fi
}
export -f engine
printf '%s\n' 'firefox wasm' 'firefox js' 'chromium wasm' 'chromium js' 'webkit wasm' 'webkit js' |
  xargs -P3 -L1 bash -c 'engine "$@"' engine
