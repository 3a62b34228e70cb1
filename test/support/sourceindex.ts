/** The sources of the service as a program of the compiler, and where its functions are called and its properties are set. */
import { dirname, join, relative } from "node:path";
import ts from "typescript";

export type Call = ts.CallExpression | ts.NewExpression;
export type Property = ts.PropertyAssignment | ts.ShorthandPropertyAssignment;
/** An expression whose value is the detail or title of an error. */
export type Detail = ts.Expression | ts.ShorthandPropertyAssignment;

export interface SourceIndex {
  readonly checker: ts.TypeChecker;
  /** By the name of the function or method. */
  readonly calls: ReadonlyMap<string, readonly Call[]>;
  /** Properties of object literals by their name, with its quotes if it has them. */
  readonly properties: ReadonlyMap<string, readonly Property[]>;
  readonly details: readonly Detail[];
  isOurs(node: ts.Node): boolean;
  /** Returns the symbol itself, not that of its import. */
  symbolOf(node: ts.Node): ts.Symbol | undefined;
  /** `file:line`. */
  placeOf(node: ts.Node): string;
}

/** Which argument of a constructor is the detail. */
const constructors: Readonly<Record<string, number>> = { ApiError: 1, TokenRefused: 2, StepError: 2, ImageError: 1 };
/** Keys beside `detail` in the objects that clients see: errors, reasons of tunnels, results of claims and of imports. */
const errorKeys = ["code", "fault", "isFound", "checked", "skipped"];

/** Creates the index of the files; `root` is the folder of the repository. */
export function indexSources(root: string, files: readonly string[]): SourceIndex {
  const known = new Set(files);
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ["lib.esnext.d.ts"],
    types: [],
    allowImportingTsExtensions: true,
    noEmit: true,
    strict: true,
  };
  // Packages are not resolved: no detail is in them, and their types would take most of the time.
  const program = ts.createProgram([...files], options, {
    ...ts.createCompilerHost(options),
    resolveModuleNameLiterals: (names, from) =>
      names.map(({ text }) => {
        const resolvedFileName = text.startsWith(".")
          ? join(dirname(from), text)
          : text.replace(/^@brume\/api\//, `${root}/api/src/`);
        return { resolvedModule: known.has(resolvedFileName) ? { resolvedFileName, extension: ".ts" } : undefined };
      }),
  });
  const checker = program.getTypeChecker();
  const calls = new Map<string, Call[]>();
  const properties = new Map<string, Property[]>();
  const details: Detail[] = [];

  function visit(node: ts.Node): void {
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      const name = nameOf(node.expression);
      add(calls, name, node);
      const index = ts.isNewExpression(node) ? constructors[name] : undefined;
      const detail = index === undefined ? undefined : node.arguments?.[index];
      if (detail !== undefined) details.push(detail);
    }
    if (ts.isObjectLiteralExpression(node)) {
      const own = node.properties.filter(
        (one) => ts.isPropertyAssignment(one) || ts.isShorthandPropertyAssignment(one),
      );
      const names = new Set(own.map((one) => one.name.getText()));
      const isError = names.has("detail") && errorKeys.some((key) => names.has(key));
      const isDelivery = names.has("error") && names.has("status");
      for (const one of own) {
        const name = one.name.getText();
        add(properties, name, one);
        if ((isError && (name === "detail" || name === "title")) || (isDelivery && name === "error"))
          details.push(ts.isPropertyAssignment(one) ? one.initializer : one);
      }
    }
    ts.forEachChild(node, visit);
  }
  for (const source of program.getSourceFiles()) if (known.has(source.fileName)) visit(source);

  return {
    checker,
    calls,
    properties,
    details,
    isOurs: (node) => known.has(node.getSourceFile().fileName),
    symbolOf(node) {
      const symbol = checker.getSymbolAtLocation(node);
      const isImport = symbol !== undefined && (symbol.flags & ts.SymbolFlags.Alias) !== 0;
      return isImport ? checker.getAliasedSymbol(symbol) : symbol;
    },
    placeOf(node) {
      const source = node.getSourceFile();
      const { line } = source.getLineAndCharacterOfPosition(node.getStart());
      return `${relative(root, source.fileName)}:${line + 1}`;
    },
  };
}

/** Returns the last name of `f`, `a.f`; "" if there is none. */
function nameOf(expression: ts.Expression): string {
  if (ts.isIdentifier(expression)) return expression.text;
  return ts.isPropertyAccessExpression(expression) ? expression.name.text : "";
}

function add<T>(map: Map<string, T[]>, key: string, value: T): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

/** Returns the function that a declaration declares. */
export function functionOf(declaration: ts.Node): ts.FunctionLikeDeclaration | undefined {
  if (ts.isFunctionDeclaration(declaration) || ts.isMethodDeclaration(declaration) || ts.isArrowFunction(declaration))
    return declaration;
  if (!ts.isVariableDeclaration(declaration) && !ts.isPropertyAssignment(declaration)) return undefined;
  const { initializer } = declaration;
  return initializer !== undefined && (ts.isArrowFunction(initializer) || ts.isFunctionExpression(initializer))
    ? initializer
    : undefined;
}

/** Returns the expressions that a function returns. */
export function returnsOf(owner: ts.FunctionLikeDeclaration): ts.Expression[] {
  if (owner.body === undefined) return [];
  if (!ts.isBlock(owner.body)) return [owner.body];
  const found: ts.Expression[] = [];
  const collect = (inner: ts.Node): void => {
    if (ts.isReturnStatement(inner) && inner.expression !== undefined) found.push(inner.expression);
    if (!ts.isFunctionLike(inner)) ts.forEachChild(inner, collect);
  };
  ts.forEachChild(owner.body, collect);
  return found;
}

/** Returns the name by which others call a function; undefined: it has none. */
export function calledAs(owner: ts.SignatureDeclaration): ts.Node | undefined {
  const name = ts.isConstructorDeclaration(owner) ? owner.parent.name : owner.name;
  if (name !== undefined) return name;
  const { parent } = owner;
  return ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) ? parent.name : undefined;
}

/** Returns an expression without parentheses, types and `await`. */
export function innerOf(expression: ts.Expression): ts.Expression {
  let inner = expression;
  while (
    ts.isParenthesizedExpression(inner) ||
    ts.isAsExpression(inner) ||
    ts.isSatisfiesExpression(inner) ||
    ts.isNonNullExpression(inner) ||
    ts.isAwaitExpression(inner)
  )
    inner = inner.expression;
  return inner;
}
