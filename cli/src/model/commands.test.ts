import assert from "node:assert/strict";
import { test } from "node:test";
import { contract } from "@brume/api/contract.ts";
import type { Operation } from "@brume/api/operation.ts";
import { allCommands } from "../run.ts";
import { closest, distance } from "./closest.ts";
import { type Kind, kindOfField, kindOfMissing, listHint } from "./kinds.ts";
import { flagsOf, parseLine, usageOf } from "./parse.ts";
import { parseValue, UsageError } from "./values.ts";
import { fields, flags, nouns, phrases, synonyms, updateDefaults, words } from "./wording.ts";

const commands = allCommands();
const contractOf = (name: string) => contract[name as keyof typeof contract] as Operation;

test("every operation has a command of its own, and every command has other words", () => {
  const operations = new Set(commands.map(({ operation }) => operation));
  assert.deepEqual(
    Object.keys(contract).filter((name) => !operations.has(name)),
    [],
  );
  const all = commands.map((command) => command.words.join(" "));
  assert.equal(new Set(all).size, all.length);
  for (const command of commands) assert.ok(command.words.length <= 3 && command.summary !== "", usageOf(command));
});

test("every required field of a request is an argument or a flag, and flags of a command differ", () => {
  for (const command of commands) {
    const all = flagsOf(command).map(({ name }) => name);
    assert.equal(new Set(all).size, all.length, command.words.join(" "));
    const shorts = flagsOf(command).flatMap(({ short }) => short ?? []);
    assert.equal(new Set(shorts).size, shorts.length, command.words.join(" "));
    const order = command.args.map(({ required }) => required);
    assert.ok(!order.slice(0, -1).includes(false) || order.every((one) => !one), command.words.join(" "));
    if (command.operation === null) continue;
    const { body } = contract[command.operation as keyof typeof contract] as { body?: { required?: string[] } };
    const taken = [...command.args, ...command.flags].map(({ field }) => field);
    for (const field of body?.required ?? [])
      assert.ok(taken.includes(field) || command.body?.[field] !== undefined, `${command.words.join(" ")}: ${field}`);
  }
});

test("the list of each kind has a command, and networks without a kind have two", () => {
  const known = new Set(commands.map((command) => `brume ${command.words.join(" ")}`));
  const kinds = new Set<Kind>([...Object.values(kindOfMissing), ...Object.values(kindOfField)]);
  const named = [...kinds].flatMap((kind) => listHint(kind).match(/brume [a-z-]+ [a-z]+/g) ?? [kind]);
  assert.deepEqual(
    named.filter((one) => !known.has(one)),
    [],
  );
  assert.equal(listHint("any-network"), "brume network list and brume public-network list show all of them.");
});

test("flags of an update have no default, except those that are no stored values", () => {
  const flagOf = (line: string, name: string) =>
    commands.find(({ words }) => words.join(" ") === line)?.flags.find((flag) => flag.name === name)?.description;
  assert.equal(flagOf("server update", "cpu"), "Number of virtual CPUs.");
  assert.equal(flagOf("server create", "cpu"), "Number of virtual CPUs. Default 1.");
  assert.match(flagOf("server update", "allow-restart") ?? "", /Default `true`\.$/);
  assert.match(flagOf("firewall set", "enabled") ?? "", /Default `true`\.$/);
  // `image upload` also creates the image.
  const updates = commands.filter(
    ({ operation }) =>
      operation !== null && operation !== "writeImageContent" && contractOf(operation).method === "PUT",
  );
  assert.ok(updates.length > 10);
  for (const { operation, flags } of updates)
    for (const { field, description } of flags)
      if (updateDefaults[operation ?? ""]?.includes(field) !== true)
        assert.doesNotMatch(description, /\bDefault /, `${operation} ${field}`);
});

test("descriptions of commands have the words of the command line", () => {
  const described = Object.keys(contract).map((name) => contractOf(name).description ?? "");
  for (const [api] of phrases) {
    assert.ok(
      described.some((text) => text.includes(api)),
      api,
    );
    assert.ok(
      commands.every(({ description }) => !description.includes(api)),
      api,
    );
  }
});

test("words of other command lines lead to commands that exist", () => {
  const used = new Set(commands.flatMap((command) => command.words));
  assert.deepEqual(
    Object.values(synonyms)
      .flat()
      .filter((word) => !used.has(word)),
    [],
  );
  const remedyOf = (line: string) => {
    try {
      parseLine(line.split(" "), commands);
    } catch (error) {
      return (error as UsageError).remedy;
    }
    return "";
  };
  assert.equal(remedyOf("server stop web-1"), "Did you mean power-off or shutdown?");
  assert.equal(remedyOf("server rm web-1"), "Did you mean delete?");
  assert.equal(remedyOf("vpn show shop"), "Did you mean status?");
  assert.equal(remedyOf("zone list"), "Did you mean dns or domain?");
});

test("the wordings belong to operations and fields that exist", () => {
  const names = new Set(Object.keys(contract));
  assert.deepEqual(
    [...Object.keys(words), ...Object.keys(fields)].filter((name) => !names.has(name)),
    [],
  );
  const known = new Set(Object.values(contract).flatMap((op) => Object.keys("body" in op ? op.body.properties : {})));
  assert.deepEqual(
    [...Object.values(fields).flatMap((one) => Object.keys(one)), ...Object.keys(flags)].filter(
      (one) => !known.has(one),
    ),
    [],
  );
  const used = new Set(commands.filter((one) => one.words.length > 1).map((one) => one.words[0] ?? ""));
  assert.deepEqual(
    [...used].filter((noun) => nouns[noun] === undefined),
    [],
  );
  const params = new Set(Object.values(contract).flatMap((op) => Object.values("params" in op ? op.params : {})));
  assert.deepEqual(
    Object.keys(kindOfMissing).filter((code) => !params.has(code as never)),
    [],
  );
});

const parsed = (line: string) => {
  const result = parseLine(line.split(" "), commands);
  assert.ok("command" in result);
  return { words: result.command.words.join(" "), args: result.args, flags: Object.fromEntries(result.flags) };
};

test("a line is read with flags in any place", () => {
  assert.deepEqual(parsed("-o json server create web --ram=256 --label a=1 --label b=2 --no-wait --protected"), {
    words: "server create",
    args: ["web"],
    flags: { output: ["json"], ram: ["256"], label: ["a=1", "b=2"], wait: ["false"], protected: ["true"] },
  });
  assert.deepEqual(parsed("record create txt example.com -- -x").args, ["example.com", "-x"]);
  for (const line of [
    "server create web --ram",
    "server create web --ram --hdd 1",
    "server get a b",
    "server get -x a",
  ])
    assert.throws(() => parsed(line), UsageError, line);
  assert.deepEqual(parseLine(["server"], commands), { words: ["server"] });
});

test("texts become values of their schema", async () => {
  const file = async (path: string) => `content of ${path}`;
  const value = (schema: object, ...texts: string[]) => parseValue("--x", "X", schema, texts, file);
  assert.equal(await value({ type: "integer", minimum: 1 }, "5"), 5);
  assert.deepEqual(await value({ type: "array", items: { type: "integer" } }, "1,2", "3"), [1, 2, 3]);
  assert.equal(await value({ type: "string", enum: ["Tcp"] }, "tcp"), "Tcp");
  assert.deepEqual(await value({ type: "object", "x-labels": true }, "a=b=c"), { a: "b=c" });
  assert.deepEqual(await value({ type: "array", items: { type: "object", properties: {} } }, "[{a: 1}]"), [{ a: 1 }]);
  assert.equal(await value({ type: "string", "x-verbatim": true }, "@file"), "content of file");
  assert.equal(await value({ type: "string" }, "@"), "@");
  assert.equal(await value({ anyOf: [{ type: "string" }, { type: "null" }] }, "x"), "x");
  assert.equal(await value({ type: "string", "x-verbatim": true }, "/is a text"), "/is a text");
  await assert.rejects(value({ type: "object", properties: {} }, "~/rules.yaml"), {
    message: "--x takes the text itself, not a path.",
    remedy: "To read the file: --x @~/rules.yaml",
  });
  for (const [schema, text] of [
    [{ type: "integer" }, "1.5"],
    [{ type: "integer" }, ""],
    [{ type: "integer", maximum: 4 }, "5"],
    [{ type: "boolean" }, "maybe"],
    [{ type: "string", enum: ["Tcp"] }, "sctp"],
    [{ type: "object", "x-labels": true }, "a"],
    [{ type: "object", properties: {} }, "{a"],
  ] as const)
    await assert.rejects(value(schema, text), UsageError, text);
});

test("typing errors get suggestions, other words do not", () => {
  assert.equal(distance("lsit", "list"), 1);
  assert.deepEqual(closest("lsit", ["list", "get"]), ["list"]);
  assert.deepEqual(closest("serv", ["server", "service", "dns"]), ["server", "service"]);
  assert.deepEqual(closest("zzz", ["server", "get"]), []);
});
