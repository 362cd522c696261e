#!/usr/bin/env bash
# Builds the site of the documents in build/site. Its generator is installed in its own folder, when it is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
site=docs/site modules=docs/site/node_modules
if [ ! $modules/.package-lock.json -nt $site/package-lock.json ]; then
  # Not `npm ci`: Pagefind has a package for each system, and a registry need not have all of them.
  npm install --no-save --prefix $site --silent --no-audit --no-fund
  touch $modules/.package-lock.json
fi
rm -rf build/site build/pages
# The pages that no document has.
mkdir -p build/pages
"${CC:-cc}" -std=c11 -Isrc -o build/pages/states tests/core/states.c src/{call,endpoint,session,siphash,task_state,utf8}*.c
build/pages/states >build/pages/states.md
node scripts/size.js build/pages/sizes.md >/dev/null
node $site/reference.js >/dev/null
$modules/.bin/eleventy --config=$site/eleventy.config.js --quiet >/dev/null
node_modules/.bin/rollup -c scripts/rollup.config.js --silent --configFor page --dir build/site/abp # what dist/page has
$modules/.bin/pagefind --site build/site --silent
echo 'The site is in build/site: serve that folder, with `npx http-server build/site` for example'
