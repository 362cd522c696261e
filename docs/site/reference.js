/**
 * Makes the pages of the API reference, in Markdown, from the types and comments of each entry of the package. Fails where
 * something public says nothing of itself.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { Application, Comment, Converter, ReflectionKind } from 'typedoc';
import ts from 'typescript';
import { ENTRIES } from '../../scripts/entries.js';
import { REFERENCE, referenceOf } from './navigation.js';

// An entry written in JavaScript gives its types new names with `@typedef`; here they are exported, with what they are.
const folder = 'build/reference-entries';
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const entryPoints = Object.entries(ENTRIES).map(([path, { source, types = source }]) => {
  const from = (/** @type {string} */ target) =>
    JSON.stringify(posix.relative(folder, posix.join(types, '..', target)));
  const named = [
    ...readFileSync(types, 'utf8').matchAll(/@typedef \{import\('(.*)'\)\.(\w+)\} (\w+)/g),
  ];
  const lines = [
    `export * from ${from(posix.basename(types).replace(/ts$/, 'js'))};`,
    ...named.map(
      ([, target, type, name]) => `export type { ${type} as ${name} } from ${from(target)};`,
    ),
  ];
  const file = `${folder}/${referenceOf(path)}.ts`;
  writeFileSync(file, lines.join('\n'));
  return file;
});
const app = await Application.bootstrapWithPlugins({
  entryPoints,
  tsconfig: 'docs/site/tsconfig.json',
  basePath: '.',
  out: REFERENCE,
  outputs: [{ name: 'markdown', path: REFERENCE }],
  plugin: [new URL(import.meta.resolve('typedoc-plugin-markdown')).pathname],
  logLevel: 'Error',
  skipErrorChecking: true, // `tsc` does that, with the version that the project uses
  readme: 'none',
  excludePrivate: true,
  excludeProtected: true,
  excludeInternal: true,
  disableSources: true,
  groupOrder: ['Functions', 'Classes', '*'],
  // The plugin's.
  outputFileStrategy: 'modules',
  hidePageHeader: true,
  hideBreadcrumbs: true,
  hidePageTitle: true,
  useCodeBlocks: true,
  useHTMLAnchors: false,
  ...Object.fromEntries(
    [
      'parameters',
      'interfaceProperties',
      'classProperties',
      'typeAliasProperties',
      'propertyMembers',
      'typeDeclaration',
    ].map((what) => [`${what}Format`, 'table']),
  ),
});
// TypeDoc takes what follows a type's name in its comment. What precedes `@typedef` and `@callback` is taken here.
app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
  const declaration = context
    .getSymbolFromReflection(reflection)
    ?.declarations?.find((each) => ts.isJSDocTypedefTag(each) || ts.isJSDocCallbackTag(each));
  if (!declaration || reflection.hasComment()) return;
  const block = /** @type {ts.JSDoc} */ (declaration.parent);
  const alone = block.tags?.filter((tag) => tag.kind === declaration.kind).length === 1;
  const text = ts.getTextOfJSDocComment((alone && block.comment) || declaration.comment);
  if (text) reflection.comment = new Comment([{ kind: 'text', text }]);
});
const project = await app.convert();
if (!project) throw new Error('The reference cannot be made: its sources could not be read');
const modules = project.children ?? [];
for (const module of modules) module.name = posix.basename(module.name);

/** @param {any} reflection */
const isDescribed = (reflection) =>
  reflection.hasComment() ||
  [...(reflection.signatures ?? []), reflection.getSignature, reflection.setSignature].some(
    (signature) => signature?.hasComment(),
  );
/** Whether it is a number of the core's, whose type is generated. @param {any} reflection */
const isNumber = ({ type }) => type?.name === 'Brand';
const MEMBERS = ReflectionKind.Method | ReflectionKind.Accessor;
const silent = modules.flatMap((module) =>
  (module.children ?? []).flatMap((exported) => {
    const isOptions = /Options$|^CallContext$/.test(exported.name);
    const members = (exported.children ?? []).filter(
      (member) =>
        !member.flags.isExternal &&
        !/^\[|Callback$/.test(member.name) && // what iteration and custom elements ask for
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
await app.generateOutputs(project);
