#!/usr/bin/env bash
# Everything that must hold. Sets up and builds what is missing first. Arguments: the jobs to run; none is all of them.
set -euo pipefail
cd "$(dirname "$0")/.."

# The longest come first. Browsers wait often, so there are more at once than cores.
all='chromium-wasm c firefox-wasm node firefox-js node-without-wasm webkit-wasm chromium-js webkit-js automation
  differential fuzz lint coverage package interop discover soak demo'
at_once=4

# Each engine's suite runs with the core as WebAssembly and, under a policy that forbids it, as JavaScript.
job() {
  tests() { node --test --test-reporter=spec --test-concurrency=2 "$@"; }
  case $1 in
    chromium-* | firefox-* | webkit-*) ENGINE=${1%-*} CORE=${1#*-} tests tests/browser/engine.js ;;
    automation | discover | demo) tests "tests/browser/$1.test.js" ;;
    node) tests tests/plain tests/node ;;
    node-without-wasm) NODE_OPTIONS="--import $PWD/tests/support/no-wasm.js" tests tests/node ;;
    differential | package | interop | soak) tests "tests/$1" ;;
    c) ctest --test-dir build/test --output-on-failure ;; # under AddressSanitizer and UndefinedBehaviorSanitizer
    coverage) scripts/coverage.sh ;;
    fuzz) scripts/fuzz.sh short ;; # a little of it: npm run fuzz is the long run
    lint)
      scripts/format.sh --check
      npx --no-install eslint .
      npx --no-install tsc -p .
      cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability --inline-suppr \
        --suppress=missingIncludeSystem -I src src wasm
      ;;
    *) echo "no such job: $1" && false ;;
  esac
}

# run <job>: a line when it has ended; what it said, if it failed, is shown at the end of all.
run() {
  local log=build/logs/$1.log word=passed
  bash -euo pipefail -c 'job "$1"' job "$1" >"$log" 2>&1 || word=FAILED
  printf '%4d s  %-18s %s %s\n' $((SECONDS)) "$1" "$word" "$(sed -nE 's/^ℹ pass ([0-9]+)/(\1)/p' "$log")"
  [ $word = passed ] || echo "$1" >>build/logs/failed
}
export -f job run

scripts/build.sh wasm test
rm -rf build/logs
mkdir build/logs
trap 'exit 130' INT TERM
set -m # the jobs are a process group of their own: all of it ends with this script
xargs -n1 -P$at_once bash -c 'run "$1"' run <<<"${*:-$all}" &
set +m
trap "kill -- -$! 2>/dev/null || true" EXIT
wait $!
[ ! -e build/logs/failed ] || {
  for name in $(cat build/logs/failed); do printf '\n== %s\n' "$name" && cat "build/logs/$name.log"; done
  printf '\nfailed: %s\n' "$(xargs <build/logs/failed)"
  exit 1
}
