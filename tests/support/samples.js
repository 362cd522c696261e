/** The samples of the documents, as files that can be compiled. */
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Writes the samples in JavaScript and TypeScript to files, and a project of all of them. A sample whose first line is a
 * comment with a file's name gets that name, so that others of its document can import it.
 * @param {string} folder where; what is there is removed
 * @returns {{ project: string, count: number }} the project for `tsc -p`, and the number of samples
 */
export function writeSamples(folder) {
  rmSync(folder, { recursive: true, force: true });
  const documents = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)];
  const files = documents
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) => {
      const text = readFileSync(join(root, path), 'utf8');
      const samples = [...text.matchAll(/^```(?:js|ts)\n(.*?)^```$/gms)];
      return samples.map(([, code], i) => {
        const line = text.slice(0, text.indexOf(code)).split('\n').length;
        const name = code.match(/^\/\/ ([\w-]+)\.[jt]s\n/)?.[1] ?? `sample-${i + 1}`;
        return {
          path: join(folder, basename(path, '.md'), `${name}.ts`),
          code,
          at: `${path}:${line}`,
        };
      });
    });
  for (const { path, code, at } of files) {
    mkdirSync(dirname(path), { recursive: true });
    // The first line stays where it is, so that an error's line is that within the sample.
    writeFileSync(path, `${code}export {}; // ${at}\n`);
  }
  const types = join(root, 'tests/types');
  const project = join(folder, 'tsconfig.json');
  const config = {
    extends: relative(folder, join(types, 'tsconfig.json')),
    compilerOptions: { lib: ['es2023', 'dom', 'dom.iterable'] },
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
