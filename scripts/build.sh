#!/usr/bin/env bash
# Builds what is out of date. Arguments: wasm, test, fuzz, coverage, native, package; none is wasm and test.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
mkdir -p build

# build <preset> [configure command...]: quiet unless it fails.
build() {
  local preset=$1 log=build/$1.log
  shift
  { "$@" cmake --preset "$preset" "${options[@]}" && cmake --build "build/$preset" -j"$(nproc)"; } \
    >"$log" 2>&1 || { cat "$log"; exit 1; }
}

for what in ${@:-wasm test}; do
  options=()
  case $what in
    wasm | fuzz)
      # Without the source, CMake fetches it.
      [ ! -e build/deps/cjson/cJSON.c ] || options=("-DABP_CJSON_SOURCE_DIR=$PWD/build/deps/cjson")
      if [ "$what" = wasm ]; then build wasm emcmake; else build fuzz; fi
      ;;
    test | coverage | native) build "$what" ;;
    package)
      "$0" wasm
      node scripts/package.js
      ;;
    *)
      echo "unknown: $what (wasm, test, fuzz, coverage, native, package)"
      exit 1
      ;;
  esac
done
