/**
 * What a newcomer does: takes the samples out of the packages' own documents, and adds only what
 * they take for granted.
 */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { build, transform } from 'esbuild';

/**
 * @param {string} project that has the package
 * @param {string} path within the package
 * @param {string} [name] of the package
 */
const inPackage = (project, path, name = 'abp-bridge') => join(project, 'node_modules', name, path);

/**
 * A sample of a document, as it is written.
 * @param {string} project that has the package
 * @param {string} document its name in docs/
 * @param {string} language of the sample
 * @param {string} words that stand in the sample, and in no other of the document
 * @param {Record<string, string>} [places] the addresses in the sample, and those of this machine
 * @param {string} [name] of the package
 */
export function sample(project, document, language, words, places = {}, name) {
  const text = readFileSync(inPackage(project, `docs/${document}`, name), 'utf8');
  const samples = [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))];
  const found = samples.map(([, code]) => code).filter((code) => code.includes(words));
  if (found.length !== 1) throw new Error(`${found.length} samples of ${document} have ${words}`);
  return Object.entries(places).reduce((code, [from, to]) => {
    if (!code.includes(from)) throw new Error(`The sample of ${document} does not name ${from}`);
    return code.replaceAll(from, to);
  }, found[0]);
}

/**
 * A program in Node, as JavaScript.
 * @param {string} path
 * @param {string} code in TypeScript
 */
export async function writeProgram(path, code) {
  const { code: script } = await transform(code, { loader: 'ts' });
  writeFileSync(path, script);
}

/**
 * One file of a script and what it imports.
 * @param {string} project
 * @param {string} contents
 */
export async function bundled(project, contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: project, loader: 'js' },
    bundle: true,
    format: 'esm',
    write: false,
    logLevel: 'error',
  });
  return outputFiles[0].text;
}

/**
 * Serves a page and the files for pages of a package, each at its name there.
 * @param {string} project
 * @param {string} name of the package
 * @param {string} html
 * @param {string} policy
 */
export async function servePage(project, name, html, policy) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://localhost');
    if (pathname === '/') {
      response.setHeader('content-security-policy', policy);
      return response.setHeader('content-type', 'text/html').end(html);
    }
    try {
      const content = readFileSync(inPackage(project, `dist/page${pathname}`, name));
      const type = extname(pathname) === '.js' ? 'text/javascript' : 'application/json';
      return response.setHeader('content-type', type).end(content);
    } catch {
      return response.writeHead(404).end();
    }
  });
  server.listen(0);
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { port, close: () => (server.close(), server.closeAllConnections()) };
}
