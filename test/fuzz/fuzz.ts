/**
 * Generates invalid requests. Many are nearly valid, because only what passes the first check reaches the next one. They are derived from
 * the contract, so new operations are included.
 */
import { contract, type OperationName, operationNames } from "@brume/api/contract.ts";
import { type RecordType, recordTypes } from "@brume/api/dns.ts";
import type { Operation } from "@brume/api/operation.ts";
import type { Random } from "../support/random.ts";
import { hostileIds, hostileTexts, numbers, plausible } from "./fuzzvalues.ts";
import { makeRecord, makeZoneFile } from "./fuzzzone.ts";

export interface FuzzedRequest {
  /** The operation that it addresses; null if path or method were changed. */
  readonly name: OperationName | null;
  readonly method: string;
  readonly bytes: Buffer;
}

/** Existing objects that requests can use. */
export interface Target {
  readonly token: string;
  readonly domains: readonly TargetDomain[];
}

interface TargetDomain {
  readonly ID: number;
  readonly Serial: number;
  readonly LinkedRecords: readonly { readonly ID: number; readonly TypeRecord: RecordType }[];
}

interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** Probability of errors in a request. A request with many errors is rejected early and does not reach the rules. */
const errorLevels = [0, 0, 0, 1, 1, 1, 2, 4] as const;

export function createFuzzer(random: Random) {
  const { pick, below } = random;
  let errorLevel: number = 1;
  /** Returns true with a probability that grows with the number of errors the request should have. */
  const chance = (percent: number): boolean => random.chance(percent * errorLevel);

  const codePoint = (): string => {
    const kind = below(10);
    if (kind < 5) return String.fromCharCode(0x20 + below(0x5f));
    if (kind < 7) return String.fromCharCode(below(0x20));
    if (kind < 9) return String.fromCharCode(below(0x10000));
    return String.fromCodePoint(0x10000 + below(0x100000));
  };
  const anyText = (): string =>
    random.chance(60)
      ? pick(hostileTexts)
      : Array.from({ length: below(random.chance(5) ? 2000 : 20) }, codePoint).join("");

  /** Returns any JSON value. Deeper values are simpler. */
  function anyValue(depth = 0): unknown {
    const kind = below(depth > 3 ? 6 : 10);
    if (kind < 3) return anyText();
    if (kind < 5) return pick(numbers);
    if (kind === 5) return pick([true, false, null]);
    if (kind < 8) return Array.from({ length: below(4) }, () => anyValue(depth + 1));
    return Object.fromEntries(Array.from({ length: below(4) }, () => [anyText().slice(0, 300), anyValue(depth + 1)]));
  }

  /** Returns a value that is valid or nearly valid for the schema. */
  function valueOf(name: string, schema: Schema): unknown {
    if (chance(8)) return anyValue();
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return pick(schema.enum);
    if (schema.anyOf !== undefined) return valueOf(name, pick(schema.anyOf));
    if (schema.properties !== undefined) return objectOf(schema.properties);
    if (schema.type === "array") {
      const length = 1 + below(chance(3) ? 60 : 4);
      return Array.from({ length }, () => valueOf(name, schema.items ?? {}));
    }
    if (schema.type === "boolean") return pick([true, false, "yes", "0", 1]);
    if (schema.type === "integer" || schema.type === "number") {
      if (chance(20)) return pick(numbers);
      return Math.min(schema.maximum ?? 1e9, (schema.minimum ?? 0) + below(200));
    }
    if (schema.type === "object")
      return chance(20) ? { env: "prod", [anyText().slice(0, 70)]: anyText() } : { env: "prod" };
    return chance(20) ? anyText() : pick(plausible[name] ?? ["forged"]);
  }

  function objectOf(properties: Readonly<Record<string, Schema>>): Record<string, unknown> {
    const made: Record<string, unknown> = {};
    for (const [name, schema] of Object.entries(properties))
      if (random.chance(name === "Changes" ? 95 : 65)) made[changeCase(name)] = valueOf(name, schema);
    if (chance(4)) made[anyText().slice(0, 100)] = anyValue();
    return made;
  }

  /** Sometimes changes the letter case, which has no meaning. */
  const changeCase = (name: string): string => (chance(10) ? pick([name.toUpperCase(), name.toLowerCase()]) : name);

  function fieldsOf(op: Operation, name: OperationName, aim: TargetDomain): Record<string, unknown> {
    const fields = objectOf(op.body?.properties ?? {});
    if (!chance(10)) {
      if ("DomainId" in (op.body?.properties ?? {}) && op.method === "POST") fields["DomainId"] = aim.ID;
      if (name === "restoreVersion") fields["Serial"] = aim.Serial - below(4);
      if (name === "createDomain") fields["Name"] = `${random.chance(20) ? "sub." : ""}forge${below(25)}.test`;
      if (name === "createToken" && random.chance(50))
        for (const field of ["DomainID", "RecordPattern", "RecordTypes", "ExpiresAt", "AllowedFrom"])
          delete fields[field];
      if (name === "createToken") fields["ProjectID"] = 2;
    }
    if ("ZoneFile" in (op.body?.properties ?? {}) && random.chance(80)) fields["ZoneFile"] = makeZoneFile(random);
    const type = /^(?:create|update)Record([A-Z]+)$/.exec(name)?.[1] as RecordType | undefined;
    if (type !== undefined && !chance(20)) Object.assign(fields, makeRecord(random, type));
    if ("Changes" in fields && !chance(20))
      fields["Changes"] = Array.from({ length: 1 + below(6) }, () => {
        const change = pick(recordTypes);
        const Op = pick(["Create", "Create", "Create", "Update", "Delete"]);
        if (Op === "Create") return { Op, TypeRecord: change, ...makeRecord(random, change) };
        return { Op, ID: pick(aim.LinkedRecords)?.ID ?? 1, ...(Op === "Update" && { TTL: 1 + below(10_000) }) };
      });
    // A test must not query foreign name servers.
    for (const key of Object.keys(fields)) if (key.toLowerCase() === "migrate") delete fields[key];
    return fields;
  }

  const relaxed = (value: unknown): string =>
    JSON.stringify(value)
      .replaceAll("'", "\\'")
      .replaceAll(/"((?:[^"\\]|\\.)*)"/g, "'$1'")
      .replaceAll("true", "True")
      .replaceAll("null", "None");

  function encodeForm(value: unknown, path: string): string[] {
    if (value === null || typeof value !== "object")
      return [`${escape(path)}=${chance(4) ? String(value) : escape(String(value))}`];
    return Object.entries(value).flatMap(([key, part]) => encodeForm(part, path === "" ? key : `${path}[${key}]`));
  }
  const escape = (text: string): string => encodeURIComponent(text.toWellFormed());

  /** Returns a body in one of the accepted media types, sometimes damaged. */
  function encode(fields: Record<string, unknown>): Buffer {
    const kind = errorLevel === 0 ? below(85) : below(100);
    let text: string;
    if (kind < 60) text = JSON.stringify(fields);
    else if (kind < 70) text = relaxed(fields);
    else if (kind < 85) text = encodeForm(fields, "").join("&");
    else if (kind < 90) text = JSON.stringify(anyValue());
    else if (kind < 93) text = `${'{"a":'.repeat(below(200))}${"[".repeat(below(50_000))}`;
    else if (kind < 96)
      text = JSON.stringify(fields).replace(
        /}$/,
        `,"__proto__":{"x":1},"TTL":${pick(["1e999", "-", "0".repeat(999), "01"])}}`,
      );
    else text = Array.from({ length: below(200) }, codePoint).join("");
    const bytes = Buffer.from(text);
    if (chance(4)) for (let i = below(4); i >= 0 && bytes.length > 0; i--) bytes[below(bytes.length)] = below(256);
    if (chance(1)) return bytes.subarray(0, below(bytes.length + 1));
    return random.chance(2) ? Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]) : bytes;
  }

  function pathOf(op: Operation, name: OperationName, aim: TargetDomain): string {
    // Requests that would delete the tokens of the test itself are left out.
    const isDestructive = ["updateProject", "deleteProject", "deleteToken"].includes(name);
    return op.path.replaceAll(/\{(\w+)\}/g, (_, parameter: string) => {
      if (isDestructive) return String(20 + below(20));
      if (chance(4)) return pick(hostileIds);
      if (chance(10)) return String(below(60));
      if (parameter !== "recordId" && !op.path.startsWith("/dns/record")) return String(aim.ID);
      const type = /^updateRecord([A-Z]+)$/.exec(name)?.[1] ?? "";
      const fitting = aim.LinkedRecords.filter(({ TypeRecord }) => TypeRecord === type);
      return String(pick(fitting.length > 0 && !chance(10) ? fitting : aim.LinkedRecords)?.ID ?? 1);
    });
  }

  function queryOf(op: Operation): string {
    const names = [...Object.keys(op.query?.properties ?? {}), "limit", "cursor", "dryRun", "label", "x"];
    const pairs = Array.from({ length: below(4) }, () => {
      const name = pick(names);
      const good = { limit: String(below(1100)), dryRun: pick(["true", "false", ""]) }[name];
      const value = good !== undefined && !chance(20) ? good : chance(25) ? anyText() : pick(plausible[name] ?? ["1"]);
      return `${changeCase(name)}=${chance(3) ? "%zz%" : escape(value).slice(0, 2000)}`;
    });
    return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
  }

  /** Returns bytes that are allowed in a header, and some that are not. */
  const headerText = (): string => {
    const text = random.chance(50) ? pick(hostileTexts) : Array.from({ length: below(30) }, codePoint).join("");
    return text.slice(0, 1000).replaceAll(/[\r\n]/g, "");
  };

  function headersOf(token: string): string[] {
    const lines: string[] = [];
    if (!chance(2)) lines.push(`Authorization: Bearer ${chance(2) ? headerText() : token}`);
    const add = (percent: number, name: string, values: readonly string[]): void => {
      if (chance(percent)) lines.push(`${name}: ${chance(10) ? headerText() : pick(values)}`);
    };
    add(15, "Content-Type", [
      "application/json",
      "application/x-www-form-urlencoded",
      "text/plain",
      "a/b+json",
      "text/xml",
      "json;;=",
    ]);
    add(5, "If-Match", ["*", '"domain-1-1"', 'W/"record-1-1"', '"a", "b"', '"', "record-1-1"]);
    add(12, "Prefer", [
      "handling=strict",
      "wait=1",
      "wait=99999999999",
      "wait=-1, handling=lenient",
      ",,;=",
      'wait="2"; foo',
    ]);
    add(15, "Idempotency-Key", [`k${below(30)}`, '"quoted"', "x".repeat(256), '""', "a b"]);
    add(5, "X-Request-Id", ["good.id-1", "x".repeat(200), "no good"]);
    add(8, "Accept", ["text/dns", "text/dns;q=0", "*/*", ",", "application/json"]);
    add(2, "Content-Encoding", ["gzip", "identity", "br, gzip"]);
    add(2, "Expect", ["100-continue", "200-ok"]);
    add(2, "Upgrade", ["h2c", "websocket"]);
    add(2, "Connection", ["Upgrade", "keep-alive, close", "close"]);
    add(3, "Last-Event-ID", ["1", "-1", "99999999999999999999"]);
    if (chance(1)) lines.push(`X-${"y".repeat(below(20_000))}: z`);
    if (chance(1)) lines.push(`${headerText()}: ${headerText()}`);
    return lines;
  }

  /** Returns the same path in a form that existing clients use. */
  function encodePath(path: string): string {
    const kind = below(20);
    if (errorLevel === 0) return path;
    if (kind === 0) return path.replaceAll("/", "//");
    if (kind === 1) return `${path}/`;
    if (kind === 2) return path.toUpperCase();
    if (kind === 3) return `http://other.host${path}`;
    if (kind === 4) return path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
    return path;
  }

  /** Reads long responses less often than short ones. Ids of existing objects must remain available. */
  function pickName(): OperationName {
    const name = pick(operationNames);
    if (["listAudit", "listVersions", "readOpenapi", "readDocs"].includes(name) && random.chance(80)) return pickName();
    return name === "deleteDomain" && random.chance(80) ? "createDomain" : name;
  }

  return function createRequest(target: Target): FuzzedRequest {
    errorLevel = pick(errorLevels);
    const name = pickName();
    const op: Operation = contract[name];
    let method: string = op.method;
    const domain = pick(target.domains) ?? { ID: 1, Serial: 1, LinkedRecords: [] };
    let path = encodePath(pathOf(op, name, domain));
    let isMutated = false;
    if (chance(3)) {
      method = pick(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND", "FOO", "get"]);
      isMutated = method !== op.method;
      if (isMutated && op.path.includes("{")) path = op.path.replaceAll(/\{\w+\}/g, "2147483647");
    }
    if (chance(2)) {
      isMutated = true;
      path = `/${anyText().replaceAll(/[\s]/g, "").slice(0, 9000)}`;
    }
    const takesBody = method === "POST" || method === "PUT";
    const body = takesBody || chance(3) ? encode(fieldsOf(op, name, domain)) : Buffer.alloc(0);
    const lines = [`${method} ${path}${queryOf(op)} HTTP/1.1`, ...headersOf(target.token)];
    if (takesBody || body.length > 0) {
      if (!chance(10)) lines.push(`Content-Length: ${body.length}`);
      else {
        lines.push("Transfer-Encoding: chunked");
        const cut = below(body.length + 1);
        const chunks = [body.subarray(0, cut), body.subarray(cut)].filter((chunk) => chunk.length > 0);
        const framed = chunks.flatMap((chunk) => [
          Buffer.from(`${chunk.length.toString(16)}\r\n`),
          chunk,
          Buffer.from("\r\n"),
        ]);
        const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
        return {
          name: isMutated ? null : name,
          method,
          bytes: Buffer.concat([head, ...framed, Buffer.from("0\r\n\r\n")]),
        };
      }
    }
    const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
    return { name: isMutated ? null : name, method, bytes: Buffer.concat([head, body]) };
  };
}
