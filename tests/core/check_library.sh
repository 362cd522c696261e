#!/bin/sh
# No two files of the library need each other, directly or through others.
set -eu
# archive[object]: name type …
symbols=$("${NM:-nm}" -A -g -f posix "$1")
needs=$(echo "$symbols" | awk '$3 ~ /^[A-TV-Z]$/ {file[$2] = $1} $3 == "U" {needs[$1, $2]}
  END {for (need in needs) {split(need, of, SUBSEP); if (of[2] in file) print of[1], file[of[2]]}}')
echo "$needs" | tsort >/dev/null
# A check that read nothing must not pass.
[ "$(echo "$needs" | wc -l)" -gt 30 ] || { echo 'this is not the library'; exit 1; }
