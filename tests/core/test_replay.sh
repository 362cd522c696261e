#!/bin/sh
# Replays a recording, and altered copies of it: abp-replay says where each first differs.
set -u
replay=$1 recording=$2 work=$3

# expect <status> <words> <sed script>: what abp-replay says of the altered recording.
expect() {
  sed "$3" "$recording" >"$work"
  said=$("$replay" "$work")
  status=$?
  if [ $status -ne "$1" ] || ! echo "$said" | grep -q "$2"; then
    echo "with $3: status $status instead of $1, or not '$2':"
    echo "$said"
    exit 1
  fi
}

expect 0 'the same: [0-9]* inputs, [0-9]* actions$' ''
expect 0 'the same' '/"note"/d'
expect 1 'recorded: start, arg 1' '0,/"then":"settle"/s//"then":"start"/'
expect 1 ', at 9' 's/"at":[0-9]*/"at":9/'
expect 1 'one action more' '/"then":"settle"/d'
expect 1 'replayed: none' '/"do":"finish"/d'
expect 1 'returned -[0-9] when recorded' '/"do":"request"/s/"id":{[^}]*}//; s/"status":-[0-9]*/"status":-9/'
expect 1 'returned 0 when recorded' '/"status":-/d'
expect 1 'says: ' 's/"seed":"..../"seed":"0000/'
expect 1 'malformed differs: 7 recorded, [0-9]* replayed' 's/"malformed":[0-9]*/"malformed":7/'
expect 2 'no seed' 's/"seed":"../"seed":"/'
expect 2 'no such input' 's/"do":"finish"/"do":"finnish"/'
expect 2 'not exist' '1d'
expect 2 'exists already' '1{p;}'
expect 2 'not JSON' '2s/{/[/'
expect 2 'names no endpoint' '2s/"e":1/"e":9999999/'
expect 2 'no recording' '/./d'
"$replay" "$work.missing" >"$work"
[ $? -eq 2 ] && grep -q 'cannot be opened' "$work"
