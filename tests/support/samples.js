/** The samples of all documents, and the examples in comments, as files that can be compiled. */
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DOCUMENTS } from '../../docs/site/navigation.js';
import { MAIN, PACKAGES } from '../../scripts/entries.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Writes the samples in JavaScript and TypeScript to files, and a project of all of them. A sample
 * whose first line is a comment with a file's name gets that name, so that others of its document
 * can import it.
 * @param {string} folder where; what is there is removed
 * @returns {{ project: string, count: number }} the project for `tsc -p`, and the number of samples
 */
export function writeSamples(folder) {
  rmSync(folder, { recursive: true, force: true });
  const files = DOCUMENTS.flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    const samples = [...text.matchAll(/^```(?:js|ts)\n(.*?)^```$/gms)];
    return samples.map(([, code], i) => {
      const line = text.slice(0, text.indexOf(code)).split('\n').length;
      const name = code.match(/^\/\/ ([\w-]+)\.[jt]s\n/)?.[1] ?? `sample-${i + 1}`;
      return {
        path: join(folder, path.replace(/\.md$/, ''), `${name}.ts`),
        code,
        at: `${path}:${line}`,
      };
    });
  });
  const rooms = PACKAGES.map((each) => (each === MAIN ? 'parts' : `${each.folder}/src`));
  for (const room of ['js', ...rooms]) files.push(...examplesIn(room, folder));
  for (const { path, code, at } of files) {
    mkdirSync(dirname(path), { recursive: true });
    // The first line stays where it is, so that an error's line is that within the sample.
    writeFileSync(path, `${code}export {}; // ${at}\n`);
  }
  const types = join(root, 'tests/types');
  const project = join(folder, 'tsconfig.json');
  const config = {
    extends: relative(folder, join(types, 'tsconfig.json')),
    compilerOptions: { lib: ['es2023', 'dom', 'dom.iterable'], jsx: 'react-jsx' },
    files: [
      join(types, 'samples.ts'),
      join(types, 'nats.d.ts'),
      join(types, 'express.d.ts'),
      ...files.map(({ path }) => path),
    ],
  };
  writeFileSync(project, JSON.stringify(config));
  return { project, count: files.length };
}

/** What an example of a framework takes for granted. @type {Record<string, string>} */
const IMPORTS = {
  'react.js':
    "declare const useState: (value: any) => [any, (value: any) => void]; import { useCall, useConnection, useView } from 'abp-bridge/react'; ",
  'vue.js':
    "declare const useTemplateRef: (name: string) => import('vue').ShallowRef<HTMLIFrameElement | null>; import { useCall, useConnection } from 'abp-bridge/vue'; ",
  'svelte.js': "import { calls, connection } from 'abp-bridge/svelte'; ",
};

/**
 * What stands after `@example` in the comments of sources. Of Svelte, what is no markup.
 * @param {string} room a folder of sources
 * @param {string} folder where the samples are written
 */
function examplesIn(room, folder) {
  const sources = readdirSync(join(root, room), { recursive: true })
    .filter((path) => /\.[jt]s$/.test(path))
    .map((path) => `${room}/${path}`);
  return sources.flatMap((source) => {
    const text = readFileSync(join(root, source), 'utf8');
    const found = [...text.matchAll(/^ *\* @example\n((?: *\* (?!@).*\n)+)/gm)];
    return found.map(([whole, lines], i) => {
      const code = lines.replace(/^ *\* /gm, '');
      const isJsx = /^</m.test(code) && !source.includes('svelte');
      return {
        path: join(folder, 'examples', source, `example-${i + 1}.ts${isJsx ? 'x' : ''}`),
        code: (IMPORTS[basename(source)] ?? '') + (isJsx ? code : code.replace(/^<.*\n/gm, '')),
        at: `${source}:${text.slice(0, text.indexOf(whole)).split('\n').length}`,
      };
    });
  });
}
