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
rm -rf build/site
node $site/reference.js >/dev/null
$modules/.bin/eleventy --config=$site/eleventy.config.js --quiet >/dev/null
node_modules/.bin/rollup -c scripts/rollup.config.js --silent --configFor page --dir build/site/abp # what dist/page has
$modules/.bin/pagefind --site build/site --silent
echo 'The site is in build/site: serve that folder, with `npx http-server build/site` for example'
