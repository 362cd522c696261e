#!/bin/sh
# A program shares its names with the libraries that it links: whatever this one defines begins with abp_. And no two of
# its files need each other, directly or through others.
set -eu
# archive[object]: name type …
symbols=$("${NM:-nm}" -A -g -f posix "$1")
# Two underscores are the compiler's. cJSON is in it if its source was compiled in.
defined=$(echo "$symbols" | awk '$3 ~ /^[A-TV-Z]$/ && $2 !~ /^__/ {print $2}')
bad=$(echo "$defined" | grep -vE '^(abp_|cJSON)' || true)
[ -z "$bad" ] || { echo "do not begin with abp_: $bad"; exit 1; }
echo "$symbols" | awk '$3 ~ /^[A-TV-Z]$/ {file[$2] = $1} $3 == "U" {needs[$1, $2]}
  END {for (need in needs) {split(need, of, SUBSEP); if (of[2] in file) print of[1], file[of[2]]}}' | tsort >/dev/null
# A check that read nothing must not pass.
[ "$(echo "$defined" | grep -c '^abp_')" -gt 200 ] || { echo 'this is not the library'; exit 1; }
