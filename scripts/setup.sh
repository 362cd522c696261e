#!/usr/bin/env bash
# Installs what is missing: as root on Debian or Ubuntu by itself, elsewhere it says what to install.
# Does nothing, quickly, when everything is there. Argument: what it is for: build (and the demo), fleet (the demo of that, and build),
# test (npm test), or all (npm run test:all), which is the default and includes all others.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/deps
case ${1:-all} in
  build) wanted='build debian' ;;
  fleet) wanted='build debian fleet' ;;
  test) wanted='build debian test' ;;
  all) wanted='build debian fleet test all' ;;
  *)
    echo "unknown: $1 (build, fleet, test, all)"
    exit 1
    ;;
esac

# needed for | tool, file or pkg-config module that shows it is there | Debian package | what it is for
# Stops without the tools that the build needs; only tests need the rest.
needed='
build|node||the shim and its build: version 20 or later
build|npm||the shim and its build: version 20 or later
build|cc|build-essential|compiling the core
build|cmake|cmake|building
build|emcc|emscripten|compiling the core to WebAssembly (or an activated emsdk)
test|pkg-config|pkg-config|finding cJSON and cmocka
test|lib:libcjson|libcjson-dev|JSON in the native build (otherwise CMake fetches it)
test|lib:cmocka|libcmocka-dev|C tests
test|clang-format|clang-format|checking the layout of C
test|cppcheck|cppcheck|linting C
test|chromium|chromium|browser tests (or set CHROMIUM to a Chromium or Chrome)
all|lib:libwebsockets|libwebsockets-dev|the example of a native app behind a WebSocket
all|gcovr|gcovr|the coverage of C
all|clang|clang|fuzzing
all|libfuzzer|libclang-rt-dev|fuzzing
all|firefox-esr|firefox-esr|browser tests
all|WebKitWebDriver|webkit2gtk-driver|browser tests
all|xvfb-run|xvfb|a screen for WebKit
all|xauth|xauth|a screen for WebKit
fleet|nats-server|nats-server|tasks of A2A that outlive a process
debian|dpkg-source|dpkg-dev|unpacking the source of cJSON
debian|/etc/ssl/certs/ca-certificates.crt|ca-certificates|package sources over HTTPS
'
debian() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
present() {
  case $1 in
    /*) [ -e "$1" ] ;;
    lib:*) command -v pkg-config >/dev/null && pkg-config --exists "${1#lib:}" ;;
    chromium) [ -n "${CHROMIUM:-}" ] || command -v chromium >/dev/null ;;
    libfuzzer) compgen -G "$(clang -print-resource-dir 2>/dev/null)/lib/*/libclang_rt.fuzzer*" >/dev/null ;;
    npm) [ node_modules/.package-lock.json -nt package-lock.json ] || command -v npm >/dev/null ;;
    dpkg-source) [ -e build/deps/cjson/cJSON.c ] || command -v dpkg-source >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

packages=()
stop=
while IFS='|' read -r need tool package purpose; do
  [ -n "$tool" ] && [[ " $wanted " == *" $need "* ]] && ! present "$tool" || continue
  if debian && [ -n "$package" ]; then
    packages+=("$package")
  elif [ "$need" != debian ]; then
    echo "missing: ${tool#lib:}, for $purpose${package:+: install the package $package or its equivalent}"
    # CI must not report success for tests that were skipped because a tool is missing.
    if [ "$need" = build ] || [ "${CI:-}" = true ]; then stop=1; fi
  fi
done <<<"$needed"
[ -z "$stop" ] || exit 1

missing=()
if [ ${#packages[@]} -gt 0 ]; then
  echo "installing ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  install() { apt-get install -y -qq --no-install-recommends "$@" >>build/setup.log 2>&1; }
  : >build/setup.log
  # One unreachable third-party source must not stop the rest, nor one package that is unavailable.
  apt-get update -qq >>build/setup.log 2>&1 || true
  if ! install "${packages[@]}"; then
    for package in "${packages[@]}"; do
      install "$package" || missing+=("$package")
    done
  fi
fi
for package in "${missing[@]}"; do
  IFS='|' read -r need _ _ purpose <<<"$(grep "|$package|" <<<"$needed")"
  echo "cannot install $package, for $purpose: see build/setup.log"
  # CI must not report success for tests that were skipped because a tool is missing.
  if [ "$need" = build ] || [ "${CI:-}" = true ]; then stop=1; fi
done
[ -z "$stop" ] || exit 1

# The WebAssembly build compiles cJSON from source. Debian's has its security fixes; where there is no
# Debian, CMake fetches the release it has pinned.
fetch_cjson() {
  apt=$(mktemp -d)
  trap 'rm -rf "$apt"' EXIT
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
  # The machine's own sources, as source repositories, in a configuration of their own.
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -e "$file" ] || sed -nE 's/^deb[[:space:]]/deb-src /p' "$file"
  done >"$apt/parts/src.list"
  for file in /etc/apt/sources.list.d/*.sources; do
    [ ! -e "$file" ] || sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$apt/parts/$(basename "$file")"
  done
  local options=(-o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$apt/parts"
    -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o "APT::Sandbox::User=root")
  apt-get "${options[@]}" update -qq >/dev/null 2>&1 || true
  (cd "$apt" && apt-get "${options[@]}" source -qq cjson >/dev/null 2>"$apt/log") || { tail -n 2 "$apt/log"; return 1; }
  rm -rf build/deps/cjson
  mv "$apt"/cjson-*/ build/deps/cjson
}
if [ ! -e build/deps/cjson/cJSON.c ]; then
  if command -v apt-get >/dev/null && command -v dpkg-source >/dev/null; then
    echo 'fetching the source of cJSON'
    fetch_cjson || echo 'no source package of cJSON: CMake will fetch the release'
  else
    echo 'no source package of cJSON here: CMake will fetch the release'
  fi
fi

if [ -e package-lock.json ] && { [ ! -e node_modules/.package-lock.json ] ||
  [ package-lock.json -nt node_modules/.package-lock.json ]; }; then
  echo 'installing npm packages'
  npm ci --silent --no-audit --no-fund
  touch node_modules/.package-lock.json
fi

# A demo needs the client of NATS.
if [[ " $wanted " == *" fleet "* ]] && [ ! demo/nats/node_modules/.package-lock.json -nt demo/nats/package-lock.json ]; then
  npm ci --silent --no-audit --no-fund --prefix demo/nats
  touch demo/nats/node_modules/.package-lock.json
fi

node scripts/link-sources.js
