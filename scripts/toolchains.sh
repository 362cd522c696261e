#!/usr/bin/env bash
# Builds the core with each Debian's own Emscripten and compilers, and runs the Node tests, the contracts of backends on its
# nats-server, and the demo there, in chroots that debootstrap makes. Warnings are errors. Arguments: Debian's names (bookworm trixie sid, without the
# one that runs here). TOOLCHAINS is the folder for the chroots, which are kept when it is given (some 3 GB each).
# Ends with 2 where this cannot be tried: it takes root and Debian's packages.
set -euo pipefail
cd "$(dirname "$0")/.."

cannot() {
  echo "other toolchains were not tried: $1" >&2
  exit 2
}
[ "$(id -u)" = 0 ] || cannot 'chroots take root'
command -v apt-get >/dev/null || cannot 'there is no apt-get here'
find_mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sed -n 1p
}
mirror=$(find_mirror)
[ -n "$mirror" ] || { apt-get update -qq >/dev/null 2>&1 || true; mirror=$(find_mirror); }
[ -n "$mirror" ] || cannot "this machine's package sources name no mirror of Debian"
if ! command -v debootstrap >/dev/null; then
  apt-get install -y -qq --no-install-recommends debootstrap >/dev/null 2>&1 || cannot 'debootstrap cannot be installed'
fi
if [ $# -eq 0 ]; then
  here=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  for suite in bookworm trixie sid; do
    [ "$suite" = "$here" ] || set -- "$@" "$suite"
  done
fi
scripts/setup.sh build # the npm packages and the source of cJSON, which the chroots get
folder=${TOOLCHAINS:-$(mktemp -d /tmp/toolchains.XXXXXX)}
[ -n "${TOOLCHAINS:-}" ] || trap 'rm -rf --one-file-system "$folder"' EXIT
mkdir -p "$folder" build/logs

# prepare <suite> <root>: a minimal Debian with Node; scripts/setup.sh installs the rest, as it does
# for everyone.
prepare() {
  local suite=$1 root=$2
  [ -e "$root/etc/debian_version" ] || debootstrap --variant=minbase "$suite" "$root" "$mirror"
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  apt-config dump | grep -iE '^Acquire::.*(proxy|verify)' >"$root/etc/apt/apt.conf.d/90host" || true
  # debootstrap leaves lists that still work when a mirror of unstable is older than its signature
  # lasts.
  within "$root" 'apt-get update -qq || true
    apt-get install -y -qq --no-install-recommends nodejs pkg-config libcjson-dev nats-server procps'
}

# within <root> <command>: /proc exists only while the command runs.
within() {
  unshare --mount bash -c 'mount -t proc proc "$1/proc" || true
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 CI=true DEBIAN_FRONTEND=noninteractive \
      chroot "$1" bash -euo pipefail -c "$2"' within "$1" "$2"
}

# try_out <root>: the tests. The core runs as WebAssembly and as JavaScript.
try_out() {
  local root=$1
  rm -rf "$root/abp"
  mkdir -p "$root/abp/build/deps"
  git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- -c | tar -x -C "$root/abp"
  cp -a node_modules "$root/abp/"
  [ ! -e build/deps/cjson ] || cp -a build/deps/cjson "$root/abp/build/deps/"
  within "$root" 'cd /abp
    scripts/build.sh wasm native
    emcc --version | head -n 1; cc --version | head -n 1; node --version
    node --test --test-concurrency=2 tests/node/*.test.js packages/[!g]*/tests/*.test.js
    nats-server --version
    node --test packages/a2a-store/tests/fleet/nats.test.js
    node --import ./tests/support/no-wasm.js --test tests/node/{driver,instance,transcripts,reentrancy,leaks}.test.js
    node demo/main.js --once'
}

failed=() untried=()
for suite; do
  started=$SECONDS word=passed log=build/logs/toolchain-$suite.log root=$folder/$suite
  # Not as the condition of an `if`, which would disable -e.
  (prepare "$suite" "$root") >"$log" 2>&1 &
  if ! wait $!; then
    word='not tried: it cannot be installed'
    untried+=("$suite")
  else
    (try_out "$root") >>"$log" 2>&1 &
    wait $! || { word=FAILED && failed+=("$suite"); }
  fi
  printf '%4d s  %-10s %s\n' $((SECONDS - started)) "$suite" "$word"
  grep -E '^(emcc|cc) \(|^v[0-9.]+$' "$log" || true
  [ -n "${TOOLCHAINS:-}" ] || rm -rf --one-file-system "$root"
done
for suite in "${failed[@]}" "${untried[@]}"; do
  printf '\n== %s\n' "$suite"
  tail -n 100 "build/logs/toolchain-$suite.log"
done
[ ${#failed[@]} -eq 0 ]
[ ${#untried[@]} -eq 0 ] || cannot "${untried[*]} cannot be installed"
