#!/usr/bin/env bash
# Fuzzes the core with libFuzzer, from the seeds in tests/fuzz/corpus. Argument: seconds for each target (300), two
# targets at a time, also from build/fuzz/corpus.tar.gz where that is; `short`, a fixed number of runs from a fixed
# seed, as the tests do; or `corpus`, which makes that archive of what it had, what was found, and the messages of
# transcripts and recordings: of each what adds coverage. A release has it as an attachment.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh fuzz
how=${1:-300}
found=build/fuzz/found
archive=build/fuzz/corpus.tar.gz
more=build/fuzz/corpus # its folders
targets='text numbers peers rpc libc tasks recordings'

rm -rf "$more"
for target in $targets; do mkdir -p "$more/$target" "$found/$target"; done
[ "$how" = short ] || [ ! -e "$archive" ] || tar -xzf "$archive" -C "$more"

# fuzz <target> <folder for new inputs> [option...]: quiet unless it finds something; that is kept, and its
# name said.
fuzz() {
  local target=$1 log=build/fuzz/$1.log new=$2 most=1000
  [ "$target" != recordings ] || most=4000
  shift 2
  mkdir -p "$new"
  build/fuzz/tests/fuzz/fuzz_"$target" -max_len=$most -timeout=10 -dict=tests/fuzz/abp.dict \
    -artifact_prefix="$found/$target-" "$@" "$new" tests/fuzz/corpus/"$target" "$more/$target" >"$log" 2>&1 ||
    { grep -av '^#' "$log"; return 1; }
  echo "$target: $(tail -n 1 "$log"), $(grep -ao 'cov: [0-9]*' "$log" | tail -n 1)"
}

case $how in
  short)
    # New inputs are dropped, so that every such run is the same. As many as fit into half a minute.
    rm -rf build/fuzz/new
    for target in $targets; do
      case $target in
        numbers | peers | rpc) runs=1000 ;;
        text) runs=2000 ;;
        *) runs=4000 ;;
      esac
      fuzz "$target" build/fuzz/new/"$target" -seed=1 -runs=$runs
    done
    ;;
  corpus)
    scripts/build.sh wasm
    rm -rf build/fuzz/{seeds,kept}
    mkdir -p build/fuzz/seeds
    node tests/fuzz/seeds.js build/fuzz/seeds/text
    node tests/fuzz/recordings.js build/fuzz/seeds/recordings
    for target in $targets; do
      mkdir -p build/fuzz/{seeds,kept}/"$target"
      build/fuzz/tests/fuzz/fuzz_"$target" -set_cover_merge=1 build/fuzz/kept/"$target" tests/fuzz/corpus/"$target" \
        "$more/$target" build/fuzz/seeds/"$target" "$found/$target" >build/fuzz/"$target".log 2>&1
    done
    # The same files make the same archive.
    tar -C build/fuzz/kept --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -c $targets |
      gzip -n >"$archive"
    echo "$archive: $(tar -tzf "$archive" | grep -vc '/$') inputs"
    ;;
  *)
    export -f fuzz
    export found more
    for target in $targets; do echo "$target"; done |
      xargs -P 2 -I% bash -c "fuzz % $found/% -max_total_time=$how"
    ;;
esac
