#!/usr/bin/env bash
# Says which lines and branches of src/ the C tests run, and fails if they are too few. The replay of the fuzzer's
# corpus counts; the exploration, which is long and compiled for itself, does not. --missed lists what never ran.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh coverage
find build/coverage -name '*.gcda' -delete
ctest --test-dir build/coverage -j2 -E 'core_symbols|install_and_use|explore|walk' >build/coverage.log 2>&1 ||
  { cat build/coverage.log; exit 1; }
cd build/coverage
node ../../scripts/coverage.js "$@"
