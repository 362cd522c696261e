/** The site of the documents: `npm run site` builds it into build/site. It runs in the root of the repository. */
import { readFileSync } from 'node:fs';
import highlight from '@11ty/eleventy-plugin-syntaxhighlight';
import { linkDocuments, renderTables } from './markdown.js';
import { NAVIGATION, pageOf } from './navigation.js';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const listed = NAVIGATION.flatMap(({ pages }) => pages);
const pages = new Map(listed.map(({ file, name }) => [file, { href: pageOf(file), name }]));

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
    config.addTemplate(`documents/${pageOf(file)}.md`, front ? text.replace(/^# .*\n/, '') : text, {
      layout: 'page.njk',
      permalink: pageOf(file),
      source: file,
      front,
      title: title.replaceAll('`', ''),
    });
  }
  config.addGlobalData('navigation', NAVIGATION);
  config.addGlobalData('version', version);
  config.addFilter('page', pageOf);
  config.addFilter('sections', (/** @type {string} */ html) =>
    [...html.matchAll(/<h2 id="([^"]+)"[^>]*>(.*?)<\/h2>/gs)].map(([, id, text]) => ({ id, text })),
  );
  config.addFilter('file', (/** @type {string} */ path) => readFileSync(path, 'utf8'));
  config.addPassthroughCopy({ 'site/static': '.', 'docs/*.svg': '.' });
  return {
    dir: { input: 'site/pages', layouts: '../layouts', output: 'build/site' },
    markdownTemplateEngine: false,
  };
}
