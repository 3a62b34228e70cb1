/**
 * Thousands of hostile requests: every response matches the contract, none is a 5xx or late, memory stays bounded, and the stored zones
 * are valid DNS (docs/spec.md#stored-records-are-valid-dns).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient } from "@brume/api/client.ts";
import { scopes } from "@brume/api/operation.ts";
import { checkStored } from "../chaos/stored.ts";
import { checkProblem, checkResponse } from "../support/contractcheck.ts";
import { databases } from "../support/databases.ts";
import { dial, type Line, type TestResponse } from "../support/httpsocket.ts";
import { createProcess, type Process } from "../support/process.ts";
import { runsOf, withSeed } from "../support/random.ts";
import { createFuzzer, type FuzzedRequest, type Target } from "./fuzz.ts";

const requests = { sqlite: runsOf(8000), postgres: runsOf(5000) };
const connections = 6;
/** Far above the time of any response. */
const never = 20_000;
/** A small heap, so that leaked memory is visible beside memory that is not collected yet. */
const heap = { environment: { NODE_OPTIONS: "--max-old-space-size=160" } };
const mostMemory = 400 * 2 ** 20;

const good = [
  "@ A 192.0.2.1",
  "www A 192.0.2.2",
  "cut NS ns.cut",
  "ns.cut A 192.0.2.3",
  "a CNAME www",
  "t TXT x",
  "",
].join("\n");

/** Creates a project with domains and records for the fuzzer. */
async function prepare({ client, url }: Process): Promise<{ fuzzer: Client; token: string }> {
  const project = await client.createProject({ body: { Name: "fuzzing" } });
  assert.equal(project.ID, 2);
  const token = await client.createToken({ body: { Name: "fire", Scopes: [...scopes], ProjectID: 2 } });
  const fuzzer = createClient({ url, token: token.Token, retries: 0 });
  for (let i = 0; i < 5; i++) await fuzzer.createDomain({ body: { Name: `forge${i}.test`, ZoneFile: good } });
  return { fuzzer, token: token.Token };
}

/** The final response without interim ones (1xx); null if there is none. */
async function receive(line: Line, { method }: FuzzedRequest): Promise<TestResponse | null> {
  const kind = method === "HEAD" ? "head" : undefined;
  const timer = new AbortController();
  try {
    for (;;) {
      const response = await Promise.race([line.receive(kind), sleep(never, null, { signal: timer.signal })]);
      if (response === null || response.status >= 200) return response;
    }
  } finally {
    timer.abort();
  }
}

function check(forged: FuzzedRequest, response: TestResponse): void {
  assert.ok(response.status < 500, `a ${response.status} response: ${response.body}`);
  assert.ok(response.headers.has("x-request-id"));
  if (forged.method === "HEAD") return;
  if (response.status === 200) {
    if (forged.name === null || !response.headers.get("content-type")?.startsWith("application/json")) return;
    checkResponse(forged.name, JSON.parse(response.body), { dryRun: response.headers.has("x-dry-run") });
  } else {
    assert.equal(response.headers.get("content-type"), "application/problem+json");
    checkProblem(JSON.parse(response.body), forged.name ?? undefined);
  }
}

for (const kind of databases)
  test(`${kind}: hostile requests get correct responses`, (context) =>
    withSeed(async (random) => {
      const brume = await createProcess(kind, heap);
      try {
        const createRequest = createFuzzer(random);
        const { fuzzer, token } = await prepare(brume);
        const statuses = new Map<number, number>();
        let left = requests[kind];
        let target: Target = { token, domains: [] };
        let most = 0;

        /** The objects that requests can address change all the time. */
        async function refreshTarget(): Promise<void> {
          target = { token, domains: await fuzzer.listDomains() };
          most = Math.max(most, brume.memory());
        }

        async function sendMany(): Promise<void> {
          let line: Line | null = null;
          while (left-- > 0) {
            if (left % 100 === 0) await refreshTarget();
            const forged: FuzzedRequest = createRequest(target);
            try {
              line ??= await dial(brume.port);
              line.send(forged.bytes);
              const response = await receive(line, forged);
              assert.ok(response !== null, "no response");
              statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
              check(forged, response);
              if (response.headers.get("connection") === "close") {
                line.close();
                line = null;
              }
            } catch (error) {
              const request = JSON.stringify(forged.bytes.toString("latin1").slice(0, 3000)).replace(token, "TOKEN");
              throw new Error(`${(error as Error).message}, in answer to ${request}`, { cause: error });
            }
          }
          line?.close();
        }

        await refreshTarget();
        await Promise.all(Array.from({ length: connections }, sendMany));
        await refreshTarget();
        await checkStored(brume);
        assert.deepEqual(
          brume.log.filter(({ level }) => level >= 50),
          [],
        );
        assert.ok(most < mostMemory, `${most >> 20} MB`);
        assert.equal(await brume.end("SIGTERM"), 0);
        const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
        context.diagnostic(`${counts.join(", ")}; ${most >> 20} MB; ${target.domains.length} domains left`);
      } finally {
        await brume.close();
      }
    }));
