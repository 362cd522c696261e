/** The site of the documents: `npm run site` builds it into build/site. It runs in the root of the repository. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import highlight from '@11ty/eleventy-plugin-syntaxhighlight';
import { markdownOf, picturesOf, readResults } from '../../tests/bench/tables.js';
import { GROUPS } from './entries.js';
import { linkDocuments, renderTables } from './markdown.js';
import { NAVIGATION, REFERENCE, pageOf, referenceOf } from './navigation.js';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const listed = NAVIGATION.flatMap(({ pages }) => pages);
const pages = new Map(listed.map(({ file, name }) => [file, { href: pageOf(file), name }]));
/** The pages of the API reference, in the groups of the entries. */
const reference = GROUPS.map(({ title, says, entries }) => ({
  id: title.toLowerCase().replace(/\W+/g, '-'),
  title,
  says,
  entries: Object.entries(entries).map(([path, text]) => ({
    name: path,
    file: `${REFERENCE}/${referenceOf(path)}.md`,
    href: `${referenceOf(path)}.html`,
    says: text
      .replace(/`([^<`]*)`/g, '<code>$1</code>')
      .replace(/`<(.*?)>`/g, '<code>&lt;$1&gt;</code>'),
    text,
  })),
}));
const entries = reference.flatMap((group) => group.entries);
for (const { file, name, href } of entries) pages.set(file, { href, name });

/** @param {string} name of an example's file */
const exampleOf = (name) => readFileSync(`docs/site/static/examples/${name}.js`, 'utf8').trim();

/**
 * README without its title. Where it has a picture of a call that was stopped, the site has such a call; without scripts, the picture.
 * @param {string} text
 */
const frontOf = (text) =>
  text
    .replace(/^# .*\n/, '')
    .replaceAll('="docs/demo-', '="demo-')
    .replace(/<picture>[^]*?<\/picture>/, (picture) =>
      readFileSync('docs/site/layouts/stop.njk', 'utf8')
        .replace('PICTURE', picture.replace(/\s*\n\s*/g, ' '))
        .replace('APP', () => exampleOf('stop-app'))
        .replace('AGENT', () => exampleOf('stop-agent')),
    );

/** The benchmarks with their results. @param {string} text */
function benchmarksOf(text) {
  const results = readResults();
  mkdirSync('build/site', { recursive: true });
  for (const [name, picture] of Object.entries(picturesOf(results)))
    writeFileSync(`build/site/${name}`, picture);
  const parts = markdownOf(results);
  return text.replace(/^<!-- (\w+) -->$/gm, (_, name) => parts[name]);
}

/** Documents of which the site shows more, or less, than the file has. @type {Record<string, (text: string) => string>} */
const CHANGED = { 'README.md': frontOf, 'docs/benchmarks.md': benchmarksOf };

/** @param {any} config */
export default function (config) {
  config.addPlugin(highlight, { preAttributes: { tabindex: 0 } });
  config.amendLibrary('md', (/** @type {any} */ markdown) => {
    linkDocuments(markdown, pages);
    renderTables(markdown);
  });
  for (const { file, name } of listed.filter(({ file }) => file.endsWith('.md'))) {
    const text = readFileSync(file, 'utf8');
    const [, title = name] = /^# (.*)$/m.exec(text) ?? [];
    const front = file === 'README.md';
    config.addTemplate(`documents/${pageOf(file)}.md`, CHANGED[file]?.(text) ?? text, {
      layout: 'page.njk',
      permalink: pageOf(file),
      source: file,
      front,
      // Whoever searches looks for what to write, not for the faults of other packages.
      unsearched: file.startsWith('docs/stopcheck/'),
      title: title.replaceAll('`', ''),
    });
  }
  for (const { file, name, href, text: says } of entries) {
    const text = `# ${name}\n\n${says[0].toUpperCase()}${says.slice(1)}.\n\n${readFileSync(file, 'utf8')}`;
    config.addTemplate(`documents/${href}.md`, text, {
      layout: 'page.njk',
      permalink: href,
      source: file,
      title: name,
      isReference: true,
    });
  }
  config.addGlobalData('reference', reference);
  config.addGlobalData('navigation', NAVIGATION);
  config.addGlobalData('listed', listed);
  config.addGlobalData('version', version);
  config.addFilter('page', pageOf);
  config.addFilter('short', (/** @type {string} */ name) => name.replace(/^abp-bridge\//, '/'));
  config.addFilter('neighbours', (/** @type {string} */ url) => {
    const at = listed.findIndex(
      ({ file }) => `/${pageOf(file)}` === url.replace(/\/$/, '/index.html'),
    );
    if (at < 0) return [];
    return [
      { rel: 'prev', ...listed[at - 1] },
      { rel: 'next', ...listed[at + 1] },
    ].filter(({ file }) => file);
  });
  // The reference's second headings are kinds: functions, types. What has a name is below them.
  config.addFilter('sections', (/** @type {string} */ html, /** @type {boolean} */ isReference) =>
    [...html.matchAll(/<(h[23]) id="([^"]+)"[^>]*>(.*?)<\/\1>/gs)]
      .filter(([, heading]) => heading === (isReference ? 'h3' : 'h2'))
      .map(([, , id, text]) => ({ id, text })),
  );
  config.addFilter('file', (/** @type {string} */ path) => readFileSync(path, 'utf8'));
  config.addPassthroughCopy({ 'docs/site/static': '.', 'docs/*.png': '.' });
  return {
    dir: { input: 'docs/site/pages', layouts: '../layouts', output: 'build/site' },
    markdownTemplateEngine: false,
  };
}
