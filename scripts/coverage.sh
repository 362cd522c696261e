#!/usr/bin/env bash
# Measures which lines and branches of src/ the C tests run, and fails if there are too few. The replay of the fuzzer's
# corpus counts; the explorations, which are long and compiled for themselves, do not. Arguments go to gcovr:
# --branches lists the lines with branches that never ran.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh coverage
find build/coverage -name '*.gcda' -delete
ctest --test-dir build/coverage -j2 -E 'core_symbols|install_and_use|explore|walk' >build/coverage.log 2>&1 ||
  { cat build/coverage.log; exit 1; }
# Copies that are optimized for speed have branches of their own, which nothing here runs.
gcovr --root . --filter src/ --fail-under-line 95 --fail-under-branch 90 \
  --exclude-directories '.*/(abp_plain|walk|explore|explore_tasks|explore_fleet|explore_watches|rpc_explore)\.dir' "$@" build/coverage
