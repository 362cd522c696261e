/**
 * Writes the kinds of options, by which js/common/check-options.js checks them, from their types:
 * objects declared as `Kinds<Type>`, or as "The kinds of `Type` in file", get those of that type.
 * They are in the files that use them, so that a page downloads only its own.
 *
 *   node scripts/kinds.js            writes them
 *   node scripts/kinds.js --check    fails if some are out of date
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript-5';

process.chdir(fileURLToPath(new URL('../', import.meta.url)));
const { config } = ts.readConfigFile('tsconfig.check.json', ts.sys.readFile);
const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, '.');
const declares = /(Kinds<|The kinds of `)((?!\*\/)[^])*\*\/\s[^*]*?const \w+ = \{/;
const paths = fileNames.filter((path) => declares.test(readFileSync(path, 'utf8')));
const program = ts.createProgram(paths, options);
const checker = program.getTypeChecker();
const files = paths.map((path) => /** @type {ts.SourceFile} */ (program.getSourceFile(path)));

/** @param {ts.Type | undefined} type */
const partsOf = (type) => (type?.isUnion() ? type.types : type ? [type] : []);

/**
 * A type that a file declares.
 * @param {string} name
 * @param {string} path
 */
function typeIn(name, path) {
  const module = checker.getSymbolAtLocation(/** @type {ts.Node} */ (program.getSourceFile(path)));
  const symbols = module ? checker.getExportsOfModule(module) : [];
  return checker.getDeclaredTypeOfSymbol(
    /** @type {ts.Symbol} */ (symbols.find((each) => each.name === name)),
  );
}

/**
 * The objects that a file declares as the kinds of a type.
 * @param {ts.SourceFile} file
 */
const declaredIn = (file) =>
  file.statements.filter(ts.isVariableStatement).flatMap((statement) => {
    const [declaration] = statement.declarationList.declarations;
    const value = /** @type {ts.Expression} */ (declaration.initializer);
    const found = (/** @type {ts.Type} */ type, /** @type {ts.Type[]} */ others = []) => {
      // The code after the comment that declares it.
      const from = ts.getJSDocCommentsAndTags(statement).at(-1)?.end ?? statement.getStart();
      const head = file.text.slice(statement.getStart(), value.getStart());
      return [{ type, others, head, from, to: value.getEnd() }];
    };
    const given = /** @type {ts.NodeWithTypeArguments | undefined} */ (
      ts.getJSDocType(declaration)
    );
    if (/\bKinds</.test(given?.getText() ?? '')) {
      const [type, others] = (given?.typeArguments ?? []).map((of) =>
        checker.getTypeFromTypeNode(of),
      );
      return found(type, partsOf(others));
    }
    const [, name, path] = statement.getFullText().match(/The kinds of `(\w+)` in (\S+\.js)/) ?? [];
    return name ? found(typeIn(name, path)) : [];
  });

/** In the order in which a kind names them. */
const KINDS = [
  'a boolean',
  'a number',
  'a string',
  'a function',
  'an AbortSignal',
  'an object',
  'an object of numbers',
];

/**
 * A kind that is one word.
 * @param {ts.Type} type
 */
function partOf(type) {
  const { flags } = type;
  if (flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) return 'anything';
  if (flags & ts.TypeFlags.BooleanLike) return 'a boolean';
  if (flags & ts.TypeFlags.NumberLike) return 'a number';
  if (type.isStringLiteral()) return `"${type.value}"`;
  if (flags & ts.TypeFlags.StringLike) return 'a string';
  if (type.symbol?.name === 'AbortSignal') return 'an AbortSignal';
  if (type.getCallSignatures().length) return 'a function';
  if (checker.isArrayLikeType(type)) return 'an object';
  const within = type.getProperties();
  const isOfNumbers =
    within.length > 0 && within.every((each) => kindOf(typeOf(each)) === 'a number');
  return isOfNumbers ? 'an object of numbers' : 'an object';
}

/**
 * @param {ts.Type} type
 * @returns {string}
 */
function kindOf(type) {
  const parts = [...new Set(partsOf(type).map(partOf))];
  const place = (/** @type {string} */ part) => KINDS.indexOf(part);
  parts.sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
  const last = parts.pop();
  return parts.length ? `${parts.join(', ')} or ${last}` : `${last}`;
}

/**
 * The type of a present option.
 * @param {ts.Symbol} property
 */
function typeOf(property) {
  const [at] = property.declarations ?? files;
  return checker.getNonNullableType(checker.getTypeOfSymbolAtLocation(property, at));
}

/** Characters of a line, for Prettier. */
const WIDTH = 100;

/**
 * The kinds of a type, as Prettier writes them: in one line if that fits, or else in one each.
 * @param {ts.Type} type
 * @param {ts.Type[]} others types whose members are checked elsewhere
 * @param {string} head the code before them
 */
function codeOf(type, others, head) {
  const names = others.map((other) => other.isStringLiteral() && other.value);
  const each = type
    .getProperties()
    .map((property) => [
      property.name,
      names.includes(property.name) ? 'anything' : kindOf(typeOf(property)),
    ])
    .map(([name, kind]) => `${name}: '${kind}',`)
    .sort();
  const line = `\n${head}{ ${each.join(' ').slice(0, -1)} }`;
  if (`${line.trim()};`.length <= WIDTH) return line;
  return `\n${head}{\n${each.map((one) => `  ${one}\n`).join('')}}`;
}

const stale = [];
for (const file of files) {
  const wrong = declaredIn(file)
    .map(({ type, others, from, to, head }) => ({ from, to, code: codeOf(type, others, head) }))
    .filter(({ from, to, code }) => file.text.slice(from, to) !== code);
  if (!wrong.length) continue;
  stale.push(file.fileName);
  let { text } = file;
  for (const { from, to, code } of wrong.reverse())
    text = text.slice(0, from) + code + text.slice(to);
  if (process.argv[2] !== '--check') writeFileSync(file.fileName, text);
}
if (process.argv[2] === '--check' && stale.length) {
  console.error(
    `out of date: ${stale.join(', ')}: run node scripts/kinds.js and commit what it changes`,
  );
  process.exit(1);
}
