#!/usr/bin/env bash
# Formats the sources; with --check, fails if they are not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."
c=$(git ls-files '*.c' '*.h')
if [ "${1:-}" = --check ]; then
  # shellcheck disable=SC2086
  clang-format --dry-run -Werror $c
  npx --no-install prettier --check --log-level warn .
else
  # shellcheck disable=SC2086
  clang-format -i $c
  npx --no-install prettier --write --log-level warn .
fi
