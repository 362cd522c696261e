#!/bin/sh
# The core is sans-I/O and keeps no globals: its objects have no writable data and need nothing but memory.
set -eu
allowed='^(abp_|malloc$|calloc$|realloc$|free$|mem(cpy|set|cmp|move)$|bcmp$|str(len|cmp)$|_GLOBAL_OFFSET_TABLE_$|__stack_chk_fail$)'
# With sections, because constants that hold pointers (.data.rel.ro) have the letter of writable data.
symbols=$("${NM:-nm}" -f sysv "$@" | tr -d ' ')
# name|value|class|type|size|line|section, between headings that have no class.
found=$(echo "$symbols" | awk -F'|' '$3 == "U" {print $1}
  $3 ~ /^[DdBbC]$/ && $NF !~ /^\.data\.rel\.ro/ {print "writable data: " $1}')
bad=$(echo "$found" | grep -vE "$allowed" || true)
[ -z "$bad" ] || { echo "$bad"; exit 1; }
# A check that read nothing must not pass.
[ "$(echo "$symbols" | grep -c '^abp_[^|]*|[^|]*|T|')" -gt 10 ] || { echo 'these are not the objects of the core'; exit 1; }
