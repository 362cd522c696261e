/** Which types a package's declarations use, and which of them can be imported by name. */
import ts from 'typescript-5';

/**
 * The types that are met on the way from what modules export, and that none of these modules
 * exports. Classes that cannot be used as values are not looked into, and neither is what is marked
 * `@internal`.
 * @param {string[]} files the modules' declarations
 * @returns {string[]} their names, each with its file
 */
export function namelessTypes(files) {
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
    types: [],
  });
  const checker = program.getTypeChecker();
  const original = (symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const exported = files.flatMap((file) =>
    checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file))),
  );
  /** The type that a name is just another name for, with the same parameters. */
  const targetOf = (symbol) => {
    const [{ type, typeParameters } = {}] = symbol.declarations ?? [];
    const handsOn = () =>
      typeParameters.map(({ name }) => name.text).join() ===
      (type.typeArguments ?? []).map((argument) => argument.getText()).join();
    const isName =
      type && ts.isImportTypeNode(type) && type.qualifier && (!typeParameters || handsOn());
    return isName && original(checker.getSymbolAtLocation(type.qualifier));
  };
  const named = new Set(exported.map(original));
  for (const symbol of named) if (targetOf(symbol)) named.add(targetOf(symbol));
  const isTypeOnly = (symbol) =>
    (symbol.declarations ?? []).some(
      (d) => ts.isExportSpecifier(d) && ts.isTypeOnlyExportDeclaration(d),
    );
  const values = new Set(exported.filter((symbol) => !isTypeOnly(symbol)).map(original));
  const seen = new Set();
  const missing = new Set();
  const visitSymbol = (symbol) => {
    if (seen.has(symbol)) return;
    seen.add(symbol);
    for (const declaration of symbol.declarations ?? []) {
      const source = declaration.getSourceFile();
      // Other people's types have names of their own; a type parameter needs none.
      if (/node_modules/.test(source.fileName) || ts.isTypeParameterDeclaration(declaration))
        continue;
      const home = checker.getSymbolAtLocation(source);
      const isType = symbol.flags & ts.SymbolFlags.Type;
      const isShared = home && checker.getExportsOfModule(home).map(original).includes(symbol);
      if (isType && isShared && !named.has(symbol) && !named.has(targetOf(symbol))) {
        missing.add(`${symbol.name} of ${source.fileName.replace(/.*\/dist\/types\//, '')}`);
      }
      if (symbol.flags & ts.SymbolFlags.Class && !values.has(symbol)) continue;
      declaration.forEachChild(visitNode);
    }
  };
  const visitNode = (node) => {
    if (ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'internal')) return;
    const name = ts.isImportTypeNode(node)
      ? node.qualifier
      : ts.isTypeReferenceNode(node)
        ? node.typeName
        : ts.isExpressionWithTypeArguments(node) && node.expression;
    const symbol = name && checker.getSymbolAtLocation(name);
    if (symbol) visitSymbol(original(symbol));
    node.forEachChild(visitNode);
  };
  for (const symbol of exported) visitSymbol(original(symbol));
  return [...missing].sort();
}
