#!/usr/bin/env bash
# Builds what is out of date. Arguments: wasm, test, native, package; none is wasm and test.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh

for what in "${@:-wasm test}"; do
  case $what in
    *wasm*)
      cjson=build/deps/cjson
      # Emscripten caches what it builds of its libraries; Debian's own cache cannot always be written.
      [ -w "$(dirname "$(command -v emcc)")" ] || export EM_CACHE=${EM_CACHE:-$PWD/build/emscripten}
      emcmake cmake --preset wasm ${cjson:+-DABP_CJSON_SOURCE_DIR="$PWD/$cjson"} >build/wasm.log 2>&1 &&
        cmake --build build/wasm -j >>build/wasm.log 2>&1 || { cat build/wasm.log; exit 1; }
      ;;&
    *test*)
      cmake --preset test >build/test.log 2>&1 && cmake --build build/test -j >>build/test.log 2>&1 ||
        { cat build/test.log; exit 1; }
      ;;&
    *native*)
      cmake --preset native >build/native.log 2>&1 &&
        cmake --build build/native -j >>build/native.log 2>&1 || { cat build/native.log; exit 1; }
      ;;&
    *package*)
      "$0" wasm
      node scripts/package.js
      ;;
  esac
done
