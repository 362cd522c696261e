/**
 * Views of MCP Apps for tests: this library's and ext-apps', each a document that needs no other
 * file.
 */
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The pages of packages/mcp-apps/tests/browser/pages, on a site. */
export const PAGES = '/packages/mcp-apps/tests/browser/pages';

/** @returns {Promise<Record<'ours' | 'theirs', string>>} HTML */
export async function viewDocuments() {
  const folder = fileURLToPath(new URL('../browser/pages/views/', import.meta.url));
  const names = ['ours', 'theirs'];
  const { outputFiles } = await build({
    entryPoints: names.map((name) => `${folder}${name}.js`),
    outdir: folder,
    bundle: true,
    format: 'esm',
    write: false,
  });
  return Object.fromEntries(
    names.map((name) => {
      const { text } = outputFiles.find(({ path }) => path.endsWith(`${name}.js`));
      return [name, `<!doctype html><title>view</title><script type="module">${text}</script>`];
    }),
  );
}

/** The address of the sandbox page, for hosts of these origins. */
export const sandboxFor = ({ appOrigin }, ...hosts) =>
  `${appOrigin}${PAGES}/sandbox.html?embeds#${encodeURIComponent(JSON.stringify(hosts))}`;
