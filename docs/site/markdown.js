/** Changes of the documents' Markdown beyond plain HTML. */
import { existsSync } from 'node:fs';
import { posix } from 'node:path';

/**
 * The id that GitHub gives a heading, since the documents link to those.
 * @param {string} text
 */
const slug = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-');

/** @param {any} token of a heading or a link */
const textOf = (token) =>
  (token.children ?? [])
    .filter(({ type }) => type === 'text' || type === 'code_inline')
    .map(({ content }) => content)
    .join('');

/**
 * Headings get ids, and links between documents lead to pages, whose names they say in place of the files'. A link to a
 * source is left as its text: it is not in the site.
 * @param {any} markdown
 * @param {Map<string, { href: string, name: string }>} pages each document's page
 */
export function linkDocuments(markdown, pages) {
  markdown.core.ruler.push('documents', ({ tokens, env }) => {
    const file = env.source;
    if (!file) return; // no document, a page of the site's own
    const ids = new Map();
    for (const [i, token] of tokens.entries()) {
      if (token.type === 'heading_open') {
        const id = slug(textOf(tokens[i + 1]));
        const before = ids.get(id) ?? 0;
        ids.set(id, before + 1);
        token.attrSet('id', before ? `${id}-${before}` : id);
      }
      const unlinked = [];
      const parts = token.children ?? [];
      for (const [j, part] of parts.entries()) {
        if (part.type === 'link_open') {
          const { href, name } = leadTo(part.attrGet('href'), file, pages);
          if (href) part.attrSet('href', href);
          else part.hidden = true;
          unlinked.push(part.hidden);
          if (name && /^[\w/-]+\.md$/.test(parts[j + 1].content)) parts[j + 1].content = name;
        } else if (part.type === 'link_close' && unlinked.pop()) part.hidden = true;
      }
      if (token.children) token.children = token.children.filter(({ hidden }) => !hidden);
    }
  });
}

/**
 * @param {string} href
 * @param {string} file where it stands
 * @param {Map<string, { href: string, name: string }>} pages
 * @returns {{ href?: string, name?: string }} no href for what is not in the site
 */
function leadTo(href, file, pages) {
  if (/^[a-z]+:/.test(href) || href.startsWith('#')) return { href };
  const [path, anchor] = href.split('#');
  const target = posix.join(posix.dirname(file), path);
  const page = pages.get(target);
  if (page) return { ...page, href: anchor ? `${page.href}#${anchor}` : page.href };
  if (!existsSync(target)) throw new Error(`${file} links to ${href}, which is not there`);
  return {};
}

/**
 * Tables scroll by themselves, by keyboard, too. A heading that is empty is none. State diagrams are tables.
 * @param {any} markdown
 */
export function renderTables(markdown) {
  markdown.core.ruler.push('headless', ({ tokens }) => {
    for (const [i, { type, content }] of tokens.entries()) {
      if (type !== 'inline' || content || tokens[i - 1].type !== 'th_open') continue;
      tokens[i - 1].tag = tokens[i + 1].tag = 'td';
    }
  });
  const { rules } = markdown.renderer;
  rules.table_open = () =>
    '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>';
  const { fence } = rules;
  rules.fence = (
    /** @type {any[]} */ tokens,
    /** @type {number} */ i,
    /** @type {any[]} */ ...rest
  ) => (tokens[i].info === 'mermaid' ? stateTable(tokens[i].content) : fence(tokens, i, ...rest));
  rules.table_close = () => '</table></div>\n';
}

/**
 * A state diagram as a table, which takes no script and can be read aloud.
 * @param {string} code in Mermaid's language
 * @returns {string} HTML
 */
function stateTable(code) {
  const italic = (/** @type {string} */ text) => text.replace(/\*(\w+)\*/g, '<em>$1</em>');
  const name = (/** @type {string} */ state) => (state === '[*]' ? '' : `<code>${state}</code>`);
  const rows = [...code.matchAll(/^ *(\S+) --> (\S+?)(?:: (.*))?$/gm)].map(
    ([, from, to, events = 'at first']) =>
      `<tr><td>${name(from)}</td><td>${italic(events)}</td><td>${name(to)}</td></tr>`,
  );
  if (!rows.length) throw new Error(`No state diagram: ${code.slice(0, 80)}`);
  return `<div class="scroll" tabindex="0" role="group" aria-label="States" data-pagefind-ignore><table>
<thead><tr><th>state</th><th>event (owed actions)</th><th>next state</th></tr></thead>
<tbody>${rows.join('\n')}</tbody></table></div>\n`;
}
