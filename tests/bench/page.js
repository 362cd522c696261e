/**
 * Tables in the documents that benchmarks write, between markers: `<!-- name -->` and
 * `<!-- /name -->`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';

/**
 * @param {URL} page
 * @param {Record<string, string>} parts Markdown, by the names of their markers
 */
export async function putInto(page, parts) {
  let text = readFileSync(page, 'utf8');
  for (const [name, what] of Object.entries(parts)) {
    const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`${page.pathname} lacks ${begin} or ${end}`);
    text = `${text.slice(0, from)}${begin}\n\n${what}\n\n${text.slice(to)}`;
  }
  const config = await resolveConfig(page);
  writeFileSync(page, await format(text, { ...config, parser: 'markdown' }));
}
