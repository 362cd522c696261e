#!/usr/bin/env bash
# Runs tests. Sets up and builds what is missing first. Arguments: the jobs to run; none is those that tell whether it
# works, `all` is everything, `changed [COMMIT]` what a change can break (CONTRIBUTING.md).
set -euo pipefail
cd "$(dirname "$0")/.."

# The longest come first.
quick='node chromium-short c-short lint package size demo'
all='chromium firefox webkit node lint c reach automation webmcp inspector extension frameworks gateway site fleet chromium-js firefox-js webkit-js node-js node-22 node-24 coverage fuzz
  differential effects package size interop discover soak mutants demo'
# Browsers wait often, so there may be more jobs at once than processors.
at_once=$(($(nproc) + 1))

# A test that hangs ends the run, but late: a busy machine makes tests slow.
job() {
  local options='--test --test-timeout=900000 --test-reporter=spec --test-concurrency=2'
  tests() { node $options "$@"; }
  browser() { ENGINE=$1 CORE=$2 SUITES=${3:-} tests tests/browser/engine.js; }
  local engine=${1%-*}
  # The gateway starts browsers, so it is a job of its own.
  local units='tests/node/*.test.js packages/[!g]*/tests/*.test.js'
  case $1 in
    chromium | firefox | webkit) browser "$1" wasm ;;
    # The most telling part: calls, cancels, the end of a page, and strangers that are refused.
    chromium-short) browser chromium wasm 'session trust websocket' ;;
    # The core as JavaScript, in pages that forbid WebAssembly. It is the same core (tests/differential): what an
    # engine decides is how it is loaded and how it runs.
    firefox-js | webkit-js) browser "$engine" js 'transcripts session' ;;
    chromium-js) browser chromium js 'transcripts session trust workers' ;; # what else such pages forbid
    chromium-js-long | firefox-js-long | webkit-js-long) browser "${engine%-js}" js ;;
    node-js | node-js-long)
      local files=(core instance transcripts reentrancy leaks)
      files=("${files[@]/#/tests/node/}" packages/workers/tests/pool)
      files=("${files[@]/%/.test.js}")
      if [ "$1" = node-js-long ]; then files=($units); fi
      NODE_OPTIONS="--import $PWD/tests/support/no-wasm.js" tests "${files[@]}"
      ;;
    node) npx --no-install c8 node $options $units ;;
    # Node's versions, from npm: what may differ between them. Arbitrary values and floods are the same in each, so a few show
    # that they arrive; steps, and the texts of this repository, are looked at once.
    node-2?)
      local once='costs|defaults|entries|jobs|rooms|samples|security'
      # shellcheck disable=SC2086 # a pattern of files
      FC_RUNS=50 FLOOD=10000 npx --yes --package="node@${1#node-}" -- \
        node $options $(printf '%s\n' $units | grep -Ev "/($once)\.test")
      ;;
    demo | site) tests "tests/browser/$1.test.js" ;;
    automation | discover | inspector | extension | webmcp) tests packages/*/tests/browser/"$1.test.js" ;;
    frameworks) tests packages/frameworks/tests/browser/*.test.js ;;
    interop) tests tests/interop/*.test.js packages/*/tests/interop/*.test.js ;;
    differential | effects | package | size | soak | reach) tests tests/"$1"/*.test.js ;;
    # A few lines of what was tried, others in each commit: the seed is printed, and repeats a run.
    mutants) node tests/mutation/mutate.js tried --sample 12 --seed "${SEED:-$(git rev-list --count HEAD)}" ;;
    fleet) tests packages/a2a/tests/fleet/*.test.js ;; # with real NATS servers
    gateway) tests packages/gateway/tests/*.test.js ;;
    gateway-peers) tests packages/gateway/tests/peers/*.test.js ;; # downloads 300 MB, once: not one of `all`
    # Under AddressSanitizer and UndefinedBehaviorSanitizer, except the explorations.
    c) ctest --test-dir build/test -j2 --timeout 3600 --output-on-failure --label-exclude short ;;
    c-short) ctest --test-dir build/test -j2 --timeout 3600 --output-on-failure --label-exclude long ;;
    coverage) scripts/coverage.sh ;;
    fuzz) scripts/fuzz.sh short ;; # a little of it: npm run fuzz is the long run
    lint)
      scripts/format.sh --check
      npx --no-install eslint .
      npx --no-install oxlint --quiet # what needs types: no promise is left to itself
      for project in . packages/gateway scripts demo; do npx --no-install tsc -p "$project"; done
      cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability --inline-suppr \
        --suppress=missingIncludeSystem -I src src wasm packages/inspector/replay
      ;;
    *) echo "no such job: $1" && false ;;
  esac
}

# run <job>: prints a line when it has ended; the output of a job that failed is shown at the end.
run() {
  local log=build/logs/$1.log word=passed
  touch "build/logs/$1.running"
  bash -euo pipefail -c 'job "$1"' job "$1" >"$log" 2>&1 || word=FAILED
  rm "build/logs/$1.running"
  printf '%4d s  %-16s %s %s\n' $(($(date +%s) - STARTED)) "$1" "$word" "$(sed -nE 's/^ℹ pass ([0-9]+)/(\1)/p' "$log")"
  [ $word = passed ] || echo "$1" >>build/logs/failed
}
export -f job run
STARTED=$(date +%s)
export STARTED

jobs=${*:-$quick}
if [ "${1:-}" = changed ]; then
  jobs=$(node scripts/changed.js "${@:2}")
  echo "jobs: $jobs"
  [ -n "$jobs" ] || exit 0
fi
if [ "$jobs" = all ]; then
  jobs=$all
  scripts/setup.sh all
fi
scripts/build.sh wasm test
# Packing builds, so the jobs that install the package share one.
if [[ " $(xargs <<<"$jobs") " == *' reach '* ]]; then
  rm -rf build/packed
  mkdir build/packed
  PACKED=$PWD/build/packed/$(npm pack --silent --pack-destination build/packed | tail -n 1)
  export PACKED
fi
rm -rf build/logs
mkdir build/logs
trap 'exit 130' INT TERM
set -m # the jobs are a process group of their own: all of it ends with this script
xargs -n1 -P"$at_once" bash -c 'run "$1"' run <<<"$jobs" &
queue=$!
while sleep 20; do
  running=$(cd build/logs && compgen -G '*.running' || true)
  printf '%4d s  … %s\n' $(($(date +%s) - STARTED)) "$(xargs <<<"${running//.running/}")"
done &
ticker=$!
set +m
trap 'kill -- -$queue -$ticker 2>/dev/null || true' EXIT
wait $queue
kill -- -$ticker
# Engines lose an event now and then, and machines stand still. A job that fails is run once more, alone, unless ONCE is set
# or nothing in it waits; what failed at first is shown, for somebody to look into.
if [ -e build/logs/failed ] && [ -z "${ONCE:-}" ]; then
  mv build/logs/failed build/logs/failed.first
  while read -r name; do
    case $name in
      c | c-* | lint | coverage | fuzz) echo "$name" >>build/logs/failed ;;
      *)
        printf '\n== %s, which is run once more\n' "$name"
        sed -n '/failing tests:/,$p' "build/logs/$name.log"
        run "$name" </dev/null
        ;;
    esac
  done <build/logs/failed.first
fi
if [ -e build/logs/failed ]; then
  for name in $(cat build/logs/failed); do printf '\n== %s\n' "$name" && cat "build/logs/$name.log"; done
  printf '\nfailed: %s\n' "$(xargs <build/logs/failed)"
fi
# What the runners counted: node's "pass 3" and "fail 0", and ctest's "0 tests failed out of 22".
awk '/^ℹ pass / { passed += $3 } /^ℹ (fail|cancelled) / { failed += $3 }
  / tests failed out of / { failed += $4; passed += $NF - $4 }
  END { printf "\n%d passed, %d failed\n", passed, failed }' build/logs/*.log
[ ! -e build/logs/failed ]
