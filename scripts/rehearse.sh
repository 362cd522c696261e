#!/usr/bin/env bash
# Rehearses a release: publishes all packages to a registry on this machine, installs them from it in empty folders, and runs the
# lines that the documents name. Before, it compares what calls cost with tests/bench/results.json. Needs Chromium, and a machine
# where nothing else runs. For who makes a release (CONTRIBUTING.md). Argument: a commit to upgrade from (none).
set -euo pipefail
cd "$(dirname "$0")/.."
before=${1:-}
# The workflow that publishes has another machine each time: it cannot measure this.
npm run bench -- --check
root=$PWD out=$PWD/build/rehearsal port=4873
rm -rf "$out"
mkdir -p "$out"
# Verdaccio is the registry: it has what is published here, and all else from the one that npm is set to. 6.8 is the last for
# Node 20. (A package of it names a version by a tag, which not every registry has.)
mkdir "$out/registry" && cd "$out/registry"
echo '{ "dependencies": { "verdaccio": "~6.8.0" }, "overrides": { "node-fetch": "^2.7.0" } }' >package.json
npm install --silent --no-audit --no-fund
cat >config.yaml <<END
storage: storage
uplinks: { npm: { url: "$(npm config get registry)" } }
packages:
  abp-bridge*: { access: \$all, publish: \$all }
  '@abp-bridge/*': { access: \$all, publish: \$all }
  '**': { access: \$all, proxy: npm }
END
set -m # each server is a process group of its own, of which nothing is left
node node_modules/.bin/verdaccio --config config.yaml --listen "127.0.0.1:$port" >"$out/registry.log" 2>&1 &
registry=$!
cd "$root"
jobs=("$registry")
trap 'for job in "${jobs[@]}"; do kill -- "-$job" 2>/dev/null || true; done; git worktree remove --force "$out/before" 2>/dev/null || true' EXIT
until curl -sf "http://127.0.0.1:$port/-/ping" >/dev/null; do
  kill -0 "$registry" || { cat "$out/registry.log"; exit 1; }
  sleep 1
done
# Only for this run: the user's configuration does not change.
printf 'registry=http://127.0.0.1:%s/\n//127.0.0.1:%s/:_authToken=rehearsal\n' "$port" "$port" >"$out/npmrc"
export npm_config_userconfig=$out/npmrc npm_config_cache=$out/cache npm_config_fund=false npm_config_audit=false
unset npm_config_registry

# publish FOLDER VERSION: what the folder's package.json packs, as that version.
publish() {
  local tarball
  tarball=$(cd "$1" && npm pack --silent --pack-destination "$out" | tail -n 1)
  mkdir -p "$out/unpacked" && rm -rf "$out/unpacked/package"
  tar -xzf "$out/$tarball" -C "$out/unpacked"
  (cd "$out/unpacked/package" && npm pkg set "version=$2" && npm publish --ignore-scripts --silent --tag "${3:-latest}")
  echo "published $(basename "$1") as $2"
}
newest=$(node -p "require('./package.json').version")
if [ -n "$before" ]; then
  git worktree add -q --detach "$out/before" "$before"
  cp -al node_modules "$out/before/node_modules"
  mkdir -p "$out/before/build" && cp -a build/deps "$out/before/build/deps"
  publish "$out/before" "$newest-before" before
fi
publish "$root" "$newest"
for manifest in "$root"/packages/*/package.json; do
  publish "$(dirname "$manifest")" "$newest"
done

# The templates, as docs/bundlers.md says.
mkdir "$out/get" && cd "$out/get"
npm init -y >/dev/null
if [ -n "$before" ]; then
  npm install --silent "abp-bridge@$newest-before"
  node --input-type=module -e "const { connect, expose } = await import('abp-bridge'); if (!connect || !expose) process.exit(1);"
  echo "upgrading from $before"
fi
npm install --silent abp-bridge@latest
test "$(node -p "require('abp-bridge/package.json').version")" = "$newest"
for template in plain react typescript; do
  if [ $template = plain ]; then ports='8080 8081'; else ports='5173 5174'; fi
  npx --no-install abp-bridge create "$template" "$out/$template" >/dev/null
  cd "$out/$template"
  npm install --silent
  npm start >start.log 2>&1 &
  jobs+=("$!")
  app=$!
  for at in $ports; do
    until curl -sf "http://localhost:$at/" >/dev/null; do
      kill -0 "$app" || { cat start.log; exit 1; }
      sleep 1
    done
  done
  echo "the template $template runs"
  if [ "$template" = plain ]; then
    # The lines of packages/gateway/docs/gateway.md, for the app that runs.
    mkdir "$out/gateway" && cd "$out/gateway"
    npx --yes abp-bridge-gateway --version
    npx --yes abp-bridge-gateway doctor || true # says what this machine lacks
    npx --yes abp-bridge-gateway list http://localhost:8081/ --temporary
  fi
  kill -- "-$app"
  wait "$app" 2>/dev/null || true
  for at in $ports; do
    ! curl -sf "http://localhost:$at/" >/dev/null || { echo "port $at is still served"; exit 1; }
  done
  cd "$out/get"
done
echo 'The release can be published.'
