#!/bin/sh
# The core is sans-I/O and keeps no globals: its objects have no writable data and need nothing but memory.
set -u
allowed='^(abp_|call_|table_|list_|session_|endpoint_|utf8_valid$|malloc$|calloc$|realloc$|free$|mem(cpy|set|cmp|move)$|str(len|cmp)$|_GLOBAL_OFFSET_TABLE_$|__stack_chk_fail$)'
bad=$("${NM:-nm}" "$@" | awk '$(NF-1) ~ /^[DdBbC]$/ {print "writable data: " $NF}
  $(NF-1) == "U" {print $NF}' | grep -vE "$allowed")
[ -z "$bad" ] || { echo "$bad"; exit 1; }
[ "$("${NM:-nm}" "$@" | grep -c ' T abp_')" -gt 10 ] || { echo 'these are not the objects of the core'; exit 1; }
