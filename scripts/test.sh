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
step 'Node, Chromium, and the package as a stranger gets it'
node --test --test-concurrency=2 tests/plain tests/node tests/browser tests/package
