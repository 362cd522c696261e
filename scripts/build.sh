#!/usr/bin/env bash
# Builds what is out of date. Arguments: wasm, test, fuzz, coverage, native, package, mcpb; none is all that package.json points to, the C tests and the gateway's bundle: wasm, test, package and mcpb.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build

# build <preset> [configure command...]: quiet unless it fails.
build() {
  local preset=$1 log=build/$1.log
  shift
  # A cache of another folder is invalid: the checkout was moved or copied.
  grep -qsF "CMAKE_CACHEFILE_DIR:INTERNAL=$PWD/build/$preset" "build/$preset/CMakeCache.txt" || rm -rf "build/$preset"
  { "$@" cmake --preset "$preset" "${options[@]}" && cmake --build "build/$preset" -j"$(nproc)"; } \
    >"$log" 2>&1 || { cat "$log"; exit 1; }
}

# roll [option...]: makes modules.
# stale FILE: whether it is older than the sources of the modules and the types.
stale() {
  [ ! -e "$1" ] || [ -n "$(find package.json tsconfig.check.json js parts packages/*/src dist/*.js \
    scripts/{entries,rollup.config,short-exports,declarations}.js -newer "$1" -print -quit)" ]
}
roll() { node_modules/.bin/rollup -c scripts/rollup.config.js --silent "$@"; }

for what in ${@:-wasm test package mcpb}; do
  options=()
  case $what in
    wasm | native | package | mcpb) scripts/setup.sh build ;;
    test) scripts/setup.sh test ;;
    *) scripts/setup.sh all ;;
  esac
  case $what in
    wasm | fuzz)
      # Without the source, CMake fetches it.
      [ ! -e build/deps/cjson/cJSON.c ] || options=("-DABP_CJSON_SOURCE_DIR=$PWD/build/deps/cjson")
      if [ "$what" = wasm ]; then build wasm emcmake; else build fuzz; fi
      # What is imported by the package's name.
      if [ "$what" = wasm ] && stale dist/lib/index.js; then
        node scripts/kinds.js
        node packages/automation/scripts/in-page.js
        rm -rf dist/lib packages/*/dist/lib
        roll --configFor lib
      fi
      ;;
    test | coverage | native) build "$what" ;;
    package)
      scripts/build.sh wasm
      if stale dist/types/parts/main/types/index.d.ts; then
        rm -rf {.,packages/*}/dist/{page,workerd}
        roll --configFor page,workerd,singles
        node scripts/declarations.js
      fi
      ;;
    mcpb)
      scripts/build.sh wasm
      node packages/gateway/scripts/bundle.js >build/mcpb.log
      ;;
    *)
      echo "unknown: $what (wasm, test, fuzz, coverage, native, package, mcpb)"
      exit 1
      ;;
  esac
done
