#!/usr/bin/env bash
# Installs what is missing: as root on Debian or Ubuntu by itself, elsewhere it says what to install.
# Does nothing, quickly, when everything is there.
set -euo pipefail
cd "$(dirname "$0")/.."

# tool or file that shows it is there | Debian package | what it is for
needed='
cc|build-essential|compiling the core
cmake|cmake|building
pkg-config|pkg-config|finding cJSON
emcc|emscripten|compiling the core to WebAssembly (or an activated emsdk)
clang-format|clang-format|checking the layout of C
cppcheck|cppcheck|linting C
chromium|chromium|browser tests (or set CHROMIUM to a Chromium or Chrome)
/usr/include/cmocka.h|libcmocka-dev|C tests
/usr/include/cjson/cJSON.h|libcjson-dev|JSON in the native build
dpkg-source|dpkg-dev|unpacking the source of cJSON
'
debian() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
present() {
  case $1 in
    /*) [ -e "$1" ] ;;
    chromium) [ -n "${CHROMIUM:-}" ] || command -v chromium >/dev/null ;;
    dpkg-source) [ -e build/deps/cjson/cJSON.c ] || command -v dpkg-source >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

missing=()
while IFS='|' read -r tool package purpose; do
  [ -n "$tool" ] && ! present "$tool" || continue
  if debian; then missing+=("$package"); else
    echo "missing: $tool, for $purpose: install the package $package or its equivalent"
    missing+=("$package")
  fi
done <<<"$needed"

if [ ${#missing[@]} -gt 0 ]; then
  debian || exit 1
  echo "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # One unreachable third-party source must not stop the rest.
  apt-get update -qq || true
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >build-setup.log 2>&1 ||
    { cat build-setup.log; exit 1; }
  rm -f build-setup.log
fi

# The WebAssembly build compiles cJSON from source. Debian's has its security fixes; where there is no
# Debian, CMake fetches the release it has pinned.
if [ ! -e build/deps/cjson/cJSON.c ] && debian; then
  echo 'fetching the source of cJSON'
  apt=$(mktemp -d)
  trap 'rm -rf "$apt"' EXIT
  mkdir -p "$apt/lists/partial" "$apt/parts" build/deps
  # The machine's own sources, as source repositories, in a configuration of their own.
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -e "$file" ] && sed -n 's/^deb /deb-src /p' "$file"
  done >"$apt/parts/src.list" || true
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -e "$file" ] && sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$apt/parts/$(basename "$file")"
  done || true
  options=(-o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$apt/parts"
    -o "Dir::State::lists=$apt/lists" -o "APT::Sandbox::User=root")
  apt-get "${options[@]}" update -qq 2>/dev/null || true
  (cd "$apt" && apt-get "${options[@]}" source -qq cjson >/dev/null 2>"$apt/log") ||
    { cat "$apt/log"; exit 1; }
  rm -rf build/deps/cjson
  mv "$apt"/cjson-*/ build/deps/cjson
fi

if [ ! -e node_modules/.package-lock.json ] ||
  [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo 'installing npm packages'
  npm ci --silent --no-audit --no-fund
  touch node_modules/.package-lock.json
fi
