#!/usr/bin/env bash
# Fuzzes the core with libFuzzer. Argument: seconds for each target (300), two targets at a time; `short`, a
# fixed number of runs from a fixed seed, as the tests do; or `corpus`, which folds what was found and the
# seeds of the transcripts into tests/fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh fuzz
how=${1:-300}
found=build/fuzz/found
targets='text numbers peers rpc libc tasks recordings'

# fuzz <target> <folder for new inputs> [option...]: quiet unless it finds something; that is kept, and its
# name said.
fuzz() {
  local target=$1 log=build/fuzz/$1.log new=$2 most=1000
  [ "$target" != recordings ] || most=4000
  shift 2
  mkdir -p "$new" "$found"
  build/fuzz/tests/fuzz/fuzz_"$target" -max_len=$most -timeout=10 -dict=tests/fuzz/abp.dict \
    -artifact_prefix="$found/$target-" "$@" "$new" tests/fuzz/corpus/"$target" >"$log" 2>&1 ||
    { grep -av '^#' "$log"; return 1; }
  echo "$target: $(tail -n 1 "$log"), $(grep -ao 'cov: [0-9]*' "$log" | tail -n 1)"
}

case $how in
  short)
    # New inputs go nowhere, so that every such run is the same.
    rm -rf build/fuzz/new
    for target in $targets; do
      fuzz "$target" build/fuzz/new/"$target" -seed=1 -runs=4000
    done
    ;;
  corpus)
    scripts/build.sh wasm
    rm -rf build/fuzz/seeds
    mkdir -p build/fuzz/seeds "$found/text" "$found/recordings"
    node tests/fuzz/seeds.js build/fuzz/seeds
    cp build/fuzz/seeds/* "$found/text"
    node tests/fuzz/recordings.js "$found/recordings"
    for target in $targets; do
      mkdir -p build/fuzz/kept
      build/fuzz/tests/fuzz/fuzz_"$target" -set_cover_merge=1 build/fuzz/kept \
        tests/fuzz/corpus/"$target" "$found/$target" >build/fuzz/"$target".log 2>&1
      rm -r tests/fuzz/corpus/"$target"
      mv build/fuzz/kept tests/fuzz/corpus/"$target"
    done
    ;;
  *)
    export -f fuzz
    export found
    for target in $targets; do echo "$target"; done |
      xargs -P 2 -I% bash -c "fuzz % $found/% -max_total_time=$how"
    ;;
esac
