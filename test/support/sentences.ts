/**
 * Finds the sentences that the service sends as `detail` or `title` of an error, in its sources. An expression is followed to the text that
 * it may have: a parameter to the calls, a name to its constant, a property to the objects that set it, a call to what the function returns.
 * It may find a text too many, because it does not consider which values occur together. What it cannot follow is a value.
 */
import ts from "typescript";
import { calledAs, functionOf, indexSources, innerOf, type Property, returnsOf } from "./sourceindex.ts";
import {
  compactForm,
  distinct,
  type Form,
  insertForms,
  joinForms,
  keyOf,
  literal,
  trimForm,
  value,
} from "./textforms.ts";

/** A sentence: its text in parts, `null` for a value, and where it is, as `file:line`. */
export interface Sentence {
  readonly parts: readonly (string | null)[];
  readonly at: string;
}

/** The arguments of the call by which a function was reached, by parameter. */
type Bindings = ReadonlyMap<ts.Node, { readonly given: ts.Expression; readonly within: Bindings }>;

const none: Bindings = new Map();

/** Returns all sentences of the files; `root` is the folder of the repository. */
export function readSentences(root: string, files: readonly string[]): Sentence[] {
  const { checker, calls, properties, details, isOurs, symbolOf, placeOf } = indexSources(root, files);
  /** Expressions and properties that are being followed. Text that contains itself adds nothing. */
  const active = new Set<ts.Node | ts.Symbol>();
  const declared = new Map<ts.Node, readonly ts.Declaration[]>();
  /** Forms of properties, of the pass before and of this one. */
  let earlier: ReadonlyMap<ts.Symbol, Form[]> = new Map();
  let found = new Map<ts.Symbol, Form[]>();

  const orValue = (forms: Form[], at: ts.Node): Form[] => (forms.length === 0 ? value(at) : forms);

  function once(key: ts.Node | ts.Symbol, read: () => Form[], otherwise: Form[] = []): Form[] {
    if (active.has(key)) return otherwise;
    active.add(key);
    try {
      return distinct(read());
    } finally {
      active.delete(key);
    }
  }

  const formsOf = (node: ts.Expression, within: Bindings): Form[] => once(node, () => follow(innerOf(node), within));

  function follow(node: ts.Expression, within: Bindings): Form[] {
    if (ts.isStringLiteralLike(node)) return literal(node.text, node);
    if (ts.isTemplateExpression(node)) {
      const parts = node.templateSpans.flatMap((span) => [
        inserted(span.expression, within),
        literal(span.literal.text, node),
      ]);
      return joinForms([literal(node.head.text, node), ...parts], node);
    }
    if (ts.isConditionalExpression(node))
      return [...formsOf(node.whenTrue, within), ...formsOf(node.whenFalse, within)];
    if (ts.isBinaryExpression(node)) {
      const { left, operatorToken, right } = node;
      if (
        operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken ||
        operatorToken.kind === ts.SyntaxKind.BarBarToken
      )
        return [...formsOf(left, within), ...formsOf(right, within)];
      if (operatorToken.kind === ts.SyntaxKind.PlusToken)
        return joinForms([inserted(left, within), inserted(right, within)], node);
      return value(node);
    }
    if (ts.isIdentifier(node)) return ofName(symbolOf(node), node, within);
    if (ts.isPropertyAccessExpression(node)) return ofProperty(symbolOf(node.name), node);
    if (ts.isElementAccessExpression(node)) return ofElement(node, within);
    if (ts.isCallExpression(node)) return ofCall(node, within);
    return value(node);
  }

  function inserted(node: ts.Expression, within: Bindings): Form[] {
    const isNumber = (checker.getTypeAtLocation(node).flags & ts.TypeFlags.NumberLike) !== 0;
    return isNumber ? value(node) : insertForms(formsOf(node, within), node);
  }

  function ofName(symbol: ts.Symbol | undefined, node: ts.Expression, within: Bindings): Form[] {
    const declaration = symbol?.valueDeclaration;
    if (declaration === undefined) return value(node);
    if (ts.isParameter(declaration)) return ofParameter(declaration, within);
    if (ts.isVariableDeclaration(declaration) && declaration.initializer !== undefined)
      return formsOf(declaration.initializer, within);
    if (!ts.isBindingElement(declaration) || !ts.isObjectBindingPattern(declaration.parent)) return value(node);
    const { propertyName, name, initializer } = declaration;
    const property = checker.getTypeAtLocation(declaration.parent).getProperty((propertyName ?? name).getText());
    return [...ofProperty(property, node), ...(initializer === undefined ? [] : formsOf(initializer, within))];
  }

  function ofParameter(parameter: ts.ParameterDeclaration, within: Bindings): Form[] {
    const bound = within.get(parameter);
    if (bound !== undefined) return formsOf(bound.given, bound.within);
    const owner = parameter.parent;
    const name = calledAs(owner);
    if (name === undefined) return value(parameter);
    const own = symbolOf(name);
    const index = owner.parameters.indexOf(parameter);
    const forms = (calls.get(name.getText()) ?? []).flatMap(({ expression, arguments: all }) => {
      const callee = ts.isPropertyAccessExpression(expression) ? expression.name : expression;
      const given = all?.[index];
      return given !== undefined && own !== undefined && symbolOf(callee) === own ? formsOf(given, none) : [];
    });
    const { initializer } = parameter;
    return orValue(initializer === undefined ? forms : [...forms, ...formsOf(initializer, none)], parameter);
  }

  function ofProperty(symbol: ts.Symbol | undefined, node: ts.Node): Form[] {
    if (symbol === undefined) return value(node);
    const read = (): Form[] =>
      (symbol.declarations ?? []).flatMap((declaration) => {
        if (ts.isPropertyAssignment(declaration) || ts.isShorthandPropertyAssignment(declaration))
          return ofAssignment(declaration);
        if (!isOurs(declaration)) return [];
        const all = properties.get(symbol.name) ?? [];
        return all.filter((one) => declarationsOf(one).includes(declaration)).flatMap(ofAssignment);
      });
    if (active.has(symbol)) return earlier.get(symbol) ?? [];
    const forms = found.get(symbol) ?? once(symbol, read);
    found.set(symbol, forms);
    return orValue(forms, node);
  }

  const ofAssignment = (property: Property): Form[] =>
    ts.isPropertyAssignment(property)
      ? formsOf(property.initializer, none)
      : once(property, () => ofName(checker.getShorthandAssignmentValueSymbol(property), property.name, none));

  /** Returns the declarations of a property in the type that its object must have. */
  function declarationsOf(property: Property): readonly ts.Declaration[] {
    const known = declared.get(property);
    if (known !== undefined) return known;
    const type = checker.getContextualType(property.parent);
    const types = type === undefined ? [] : type.isUnion() ? type.types : [type];
    const all = types.flatMap((one) => one.getProperty(property.name.getText())?.declarations ?? []);
    declared.set(property, all);
    return all;
  }

  /** Follows `constant[key]` to all values of the constant, and `object["key"]` to all objects that set the key. */
  function ofElement(node: ts.ElementAccessExpression, within: Bindings): Form[] {
    const { expression, argumentExpression: key } = node;
    if (ts.isStringLiteral(key)) return orValue((properties.get(key.getText()) ?? []).flatMap(ofAssignment), node);
    const declaration = ts.isIdentifier(expression) ? symbolOf(expression)?.valueDeclaration : undefined;
    const constant =
      declaration !== undefined && ts.isVariableDeclaration(declaration) ? declaration.initializer : expression;
    const all = constant === undefined ? undefined : innerOf(constant);
    if (all !== undefined && ts.isArrayLiteralExpression(all))
      return all.elements.flatMap((one) => formsOf(one, within));
    if (all === undefined || !ts.isObjectLiteralExpression(all)) return value(node);
    return orValue(
      all.properties.flatMap((one) => (ts.isPropertyAssignment(one) ? formsOf(one.initializer, within) : value(node))),
      node,
    );
  }

  function ofCall(node: ts.CallExpression, within: Bindings): Form[] {
    const { expression } = node;
    const isMethod = ts.isPropertyAccessExpression(expression);
    if (isMethod && expression.name.text === "trim") return formsOf(expression.expression, within).map(trimForm);
    const declaration = symbolOf(isMethod ? expression.name : expression)?.valueDeclaration;
    if (declaration === undefined || !isOurs(declaration)) return value(node);
    const all = ts.isBindingElement(declaration) ? columnOf(declaration) : [declaration];
    const forms = all.flatMap((one) => {
      const called = functionOf(one);
      if (called === undefined) return value(node);
      const bindings = new Map(within);
      for (const [index, parameter] of called.parameters.entries()) {
        const given = node.arguments[index] ?? parameter.initializer;
        if (given !== undefined) bindings.set(parameter, { given, within });
      }
      return returnsOf(called)
        .filter(({ kind }) => kind !== ts.SyntaxKind.NullKeyword)
        .flatMap((one) => formsOf(one, bindings));
    });
    return orValue(forms, node);
  }

  /** Returns what a name of `for (const [, name] of constant)` is in turn. */
  function columnOf(element: ts.BindingElement): ts.Node[] {
    const pattern = element.parent;
    const loop = pattern.parent.parent.parent;
    if (!ts.isArrayBindingPattern(pattern) || !ts.isForOfStatement(loop)) return [];
    const constant = symbolOf(loop.expression)?.valueDeclaration;
    const rows = constant !== undefined && ts.isVariableDeclaration(constant) ? constant.initializer : undefined;
    if (rows === undefined || !ts.isArrayLiteralExpression(rows)) return [];
    const index = pattern.elements.indexOf(element);
    return rows.elements.flatMap((row) => {
      const cell = ts.isArrayLiteralExpression(row) ? row.elements[index] : undefined;
      return (cell !== undefined && ts.isIdentifier(cell) ? symbolOf(cell)?.valueDeclaration : cell) ?? [];
    });
  }

  const readAll = (): Form[] =>
    details.flatMap((detail) =>
      ts.isShorthandPropertyAssignment(detail) ? ofAssignment(detail) : formsOf(detail, none),
    );
  // The first pass finds the properties that contain themselves only once.
  readAll();
  earlier = found;
  found = new Map();
  const all = new Map<string, Sentence>();
  for (const form of readAll().map(compactForm)) {
    const text = keyOf(form);
    const at = placeOf(form.at);
    // What cannot be followed at all is another sentence at each place.
    const key = text === "{}" ? at : `${at.split(":")[0]} ${text}`;
    if (text !== "" && !all.has(key)) all.set(key, { parts: form.parts, at });
  }
  return [...all.values()];
}
