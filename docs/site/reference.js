/**
 * Makes the pages of the API reference, in Markdown, from the types and comments of each entry of the packages. Fails where
 * something public says nothing of itself. `reference-page.js` says what a page has.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { Application, Comment, Converter, ReflectionKind } from 'typedoc';
import ts from 'typescript';
import { ENTRIES } from '../../scripts/entries.js';
import { DOCUMENTS, REFERENCE, documentNamed, referenceOf } from './navigation.js';
import { membersOf, renderer } from './reference-page.js';

// An entry written in JavaScript gives its types new names with `@typedef`; here they are exported, with what they are.
const folder = 'build/reference-entries';
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const entryPoints = Object.entries(ENTRIES).map(([path, { source, types = source }]) => {
  const from = (/** @type {string} */ target) =>
    JSON.stringify(
      target.startsWith('.') ? posix.relative(folder, posix.join(types, '..', target)) : target,
    );
  const named = [
    ...readFileSync(types, 'utf8').matchAll(/@typedef \{import\('(.*)'\)\.(\w+)\} (\w+)/g),
  ];
  const lines = [
    `export * from ${from(`./${posix.basename(types).replace(/ts$/, 'js')}`)};`,
    ...named.map(
      ([, target, type, name]) => `export type { ${type} as ${name} } from ${from(target)};`,
    ),
  ];
  const file = `${folder}/${referenceOf(path)}.ts`;
  writeFileSync(file, lines.join('\n'));
  return file;
});
const app = await Application.bootstrap({
  entryPoints,
  tsconfig: 'docs/site/tsconfig.json',
  basePath: '.',
  logLevel: 'Error',
  skipErrorChecking: true, // `tsc` does that, with the version that the project uses
  readme: 'none',
  excludePrivate: true,
  excludeProtected: true,
  excludeInternal: true,
  disableSources: true,
  sort: ['static-first', 'source-order'],
});
// TypeDoc takes what follows a type's name in its comment. What precedes `@typedef` and `@callback` is taken here.
app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
  const { declarations } = context.getSymbolFromReflection(reflection) ?? {};
  // Numbers of a core, which is generated: a package takes them from another, users do not.
  if (declarations?.some((each) => each.getSourceFile().fileName.endsWith('-boundary.js')))
    reflection.comment = new Comment([], [], new Set(['@internal']));
  const declaration = declarations?.find(
    (each) => ts.isJSDocTypedefTag(each) || ts.isJSDocCallbackTag(each),
  );
  if (!declaration || reflection.hasComment()) return;
  const block = /** @type {ts.JSDoc} */ (declaration.parent);
  const alone = block.tags?.filter((tag) => tag.kind === declaration.kind).length === 1;
  const text = ts.getTextOfJSDocComment((alone && block.comment) || declaration.comment);
  const internal = block.tags?.some(({ tagName }) => tagName.text === 'internal');
  if (text || internal)
    reflection.comment = new Comment(
      [{ kind: 'text', text: text ?? '' }],
      [],
      new Set(internal ? ['@internal'] : []),
    );
});
const project = await app.convert();
if (!project) throw new Error('The reference cannot be made: its sources could not be read');
const modules = project.children ?? [];
for (const module of modules) module.name = posix.basename(module.name);

/** Classes that are exported as types alone: somebody hands them out, for a look. What says nothing of itself is not for users. */
const looked = new Set(
  app.getEntryPoints()?.flatMap(({ program, sourceFile }) => {
    const checker = program.getTypeChecker();
    const module = checker.getSymbolAtLocation(sourceFile);
    return (module ? checker.getExportsOfModule(module) : [])
      .filter(({ declarations }) => declarations?.some(ts.isTypeOnlyExportDeclaration))
      .map(({ name }) => `${posix.basename(sourceFile.fileName, '.ts')}.${name}`);
  }),
);

/** @param {any} reflection */
const isDescribed = (reflection) =>
  reflection.hasComment() ||
  [...(reflection.signatures ?? []), reflection.getSignature, reflection.setSignature].some(
    (signature) => signature?.hasComment(),
  ) ||
  reflection.type?.declaration?.signatures?.some((/** @type {any} */ each) => each.hasComment());
/** True for a number of the core, whose type is generated. @param {any} reflection */
const isNumber = ({ type }) => type?.name === 'Brand';
/** @param {any} exported @param {any} member */
const isShown = (exported, member) =>
  isDescribed(member) || !looked.has(`${exported.parent.name}.${exported.name}`);
const MEMBERS = ReflectionKind.Method | ReflectionKind.Accessor;
const silent = modules.flatMap((module) =>
  (module.children ?? []).flatMap((exported) => {
    const isOptions = /Options$|^CallContext$/.test(exported.name);
    const members = membersOf(exported).filter(
      (member) =>
        !/Callback$/.test(member.name) && // what custom elements ask for
        isShown(exported, member) &&
        (member.kindOf(MEMBERS) || (isOptions && member.kindOf(ReflectionKind.Property))),
    );
    return [exported, ...members]
      .filter(
        (each) => !each.kindOf(ReflectionKind.Reference) && !isNumber(each) && !isDescribed(each),
      )
      .map((each) => `${module.name}: ${each.getFullName().replace(`${module.name}.`, '')}`);
  }),
);
if (silent.length) {
  console.error(`Nothing is said of these:\n${silent.join('\n')}`);
  process.exit(1);
}

// The samples of the documents, which are compiled: the shortest one that imports a thing is its example.
const shown = DOCUMENTS.filter((name) => name !== 'README.md').flatMap((document) => {
  const text = readFileSync(document, 'utf8');
  return [...text.matchAll(/^```(?:js|ts|jsx|tsx|html|vue|svelte)\n.*?^```$/gms)].map(([code]) => ({
    code,
    document,
  }));
});
/** @param {string} entry @param {string} [name] of what is imported; anything, if there is none @returns {string | undefined} Markdown */
const samples = (entry, name) => {
  const what = name ? `\\{[^}]*\\b${name}\\b[^}]*\\} from ` : `(?:[^';]* from )?`;
  const imports = new RegExp(`import ${what}'${entry}'`);
  const [found] = shown
    .filter(({ code }) => imports.test(code))
    .sort((a, b) => a.code.length - b.code.length);
  return found && `${found.code}\n\nFrom [${found.document}](../../${found.document}).`;
};

const pages = new Map(modules.map((module) => [module, `${module.name}.html`]));
const { anchor, page } = renderer({ pages, samples, documentNamed });
for (const module of modules) anchor(module);
rmSync(REFERENCE, { recursive: true, force: true });
mkdirSync(REFERENCE, { recursive: true });
for (const entry of Object.keys(ENTRIES)) {
  const module = modules.find(({ name }) => name === referenceOf(entry));
  if (!module) throw new Error(`Nothing is known of ${entry}`);
  writeFileSync(`${REFERENCE}/${module.name}.md`, page(module, entry, isShown));
}
