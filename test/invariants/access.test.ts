/**
 * docs/spec.md#projects-are-isolated, #every-operation-checks-the-token, #restricted-tokens-stay-restricted for every operation of the
 * contract: no access without a valid token and scope or to another project, and no 500 for an invalid body. New operations are included.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { contract, type OperationName, operationNames } from "@brume/api/contract.ts";
import { grants, type Operation, type Scope, scopes } from "@brume/api/operation.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const unknownToken = "0".repeat(64);
const operation = (name: OperationName): Operation => contract[name];
const guarded = operationNames.filter((name) => operation(name).access !== "open");
const scoped = guarded.filter((name) => operation(name).access !== "any");
const pathOf = (name: OperationName, id: number): string => operation(name).path.replace(/\{\w+\}/g, String(id));

// The checks come before any SQL that depends on the database.
for (const kind of ["sqlite"] as const)
  describe(`access on ${kind}`, () => {
    let brume: TestService;
    /** Ids of objects of the first project, by the error code of the first parameter. */
    const ownIds: Record<string, number> = {};

    before(async () => {
      brume = await createTestService(kind);
      const domain = await brume.client.createDomain({ body: { Name: "law.example" } });
      const record = await brume.client.createRecordA({ body: { DomainId: domain.ID, Name: "www", IP: "192.0.2.1" } });
      ownIds["domain_not_found"] = domain.ID;
      ownIds["record_not_found"] = record.ID;
      ownIds["claim_not_found"] = (await brume.client.createClaim({ body: { Name: "law.example" } })).ID;
      await brume.store.write(async (tx) => {
        const kept = { id: 100, name: "lost.example", ascii: "lost.example", date: 1, record_count: 0 };
        await tx
          .insertInto("withdrawn_domain")
          .values({ ...kept, project_id: 1, reason: "law", zone_file: "", labels: "{}" })
          .execute();
      });
      ownIds["withdrawn_domain_not_found"] = 100;
      ownIds["public_network_not_found"] = (await brume.client.createPublicNetwork({ body: { Name: "law" } })).Id;
      ownIds["network_not_found"] = (await brume.client.createNetwork({ body: { Name: "law" } })).ID;
      const key = Buffer.concat([Buffer.from("\0\0\0\x0bssh-ed25519\0\0\0 "), Buffer.alloc(32, 7)]).toString("base64");
      ownIds["sshkey_not_found"] = (await brume.client.createSshKey({ body: { Title: "law", PublicKey: key } })).ID;
      const endpoint = { Url: "http://127.0.0.1:9/", Types: ["image.*"] };
      ownIds["webhook_not_found"] = (await brume.client.createWebhook({ body: endpoint })).ID;
      ownIds["server_not_found"] = (await brume.client.createServer({ body: { Name: "law" } }, { wait: 60 })).ID;
      const image = { Name: "law", ServerID: ownIds["server_not_found"] };
      ownIds["image_not_found"] = (await brume.client.createImage({ body: image }, { wait: 60 })).ID;
    });
    after(() => brume.close());

    async function send(
      name: OperationName,
      id: number,
      token: string | null,
      body?: string,
      extra: Record<string, string> = {},
    ) {
      const { method } = operation(name);
      const response = await fetch(`${brume.url}${pathOf(name, id)}`, {
        method,
        headers: { ...(token !== null && { authorization: `Bearer ${token}` }), ...extra },
        ...(body !== undefined && { body }),
      });
      const text = await response.text();
      const problem = response.headers.get("content-type")?.startsWith("application/problem+json")
        ? (JSON.parse(text) as { code: string })
        : null;
      return { status: response.status, code: problem?.code, text, headers: response.headers };
    }

    before(() => brume.client.updateProject({ path: { id: 1 }, body: { Quotas: { Tokens: 1000 } } }));

    const tokenOf = async (wanted: readonly Scope[], extra: object = {}) =>
      (await brume.client.createToken({ body: { Name: "weak", Scopes: [...wanted], ...extra } })).Token;

    for (const name of guarded) {
      test(`${name} needs a valid token`, async () => {
        const without = await send(name, 1, null);
        assert.deepEqual([without.status, without.code], [401, "token_missing"]);
        assert.equal(without.headers.get("www-authenticate"), 'Bearer realm="brume"');
        assert.match(without.text, /^\{"Message":"Authorization has been denied for this request\."/);
        const unknown = await send(name, 1, unknownToken);
        assert.deepEqual([unknown.status, unknown.code], [401, "token_invalid"]);
        assert.equal(unknown.headers.get("www-authenticate"), 'Bearer realm="brume", error="invalid_token"');
      });
    }

    for (const name of scoped) {
      test(`${name} needs its scope`, async () => {
        const { access } = operation(name);
        const others = scopes.filter((scope) => !grants([scope], access as Scope));
        const refused = await send(name, 2_147_483_647, await tokenOf(others));
        assert.deepEqual([refused.status, refused.code], [403, "scope_missing"]);
      });
    }

    for (const name of scoped.filter(
      (each) => ownIds[Object.values(operation(each).params ?? {})[0] ?? ""] !== undefined || operation(each).params,
    )) {
      test(`${name} does not see another project`, async () => {
        const error = Object.values(operation(name).params ?? {})[0] ?? "";
        const id = ownIds[error];
        if (id === undefined) {
          // Administrators see all projects, their tokens, and objects without a project.
          assert.match(error, /^(project|token|reservation|orphan)_not_found$/);
          return;
        }
        const neighbour = await brume.client.createProject({ body: { Name: `of ${name} ${Math.random()}` } });
        const token = await tokenOf(scopes, { ProjectID: neighbour.ID });
        const body = operation(name).body === undefined ? undefined : sampleBody(name);
        const foreign = await send(name, id, token, body);
        const never = await send(name, 2_147_483_647, token, body);
        assert.equal(foreign.status, 404, foreign.text);
        const strip = (text: string, number: number) =>
          text.replaceAll(String(number), "N").replace(/"instance":"[^"]*"/, "");
        assert.equal(strip(foreign.text, id), strip(never.text, 2_147_483_647));
      });
    }

    for (const name of guarded.filter((each) => operation(each).body)) {
      test(`${name} rejects an invalid body`, async () => {
        for (const body of ["{", "[]", '"text"', "{]", "a", "\u0000", '{"a":'.repeat(40), "[[[[", "%zz=%", "\ud800"]) {
          const answer = await send(
            name,
            ownIds[Object.values(operation(name).params ?? {})[0] ?? ""] ?? 1,
            brume.token,
            body,
          );
          assert.ok(
            answer.status >= 400 && answer.status < 500,
            `${JSON.stringify(body)}: ${answer.status} ${answer.text}`,
          );
        }
      });
    }

    test("an expired token is refused", async () => {
      // Until one is used before it expires.
      let [value, expiry, isValid] = ["", 0, false];
      for (let life = 3000; !isValid; life *= 2) {
        expiry = Date.now() + life;
        value = await tokenOf(["dns:read"], { ExpiresAt: new Date(expiry).toISOString() });
        isValid = (await send("listDomains", 1, value)).status === 200;
      }
      await new Promise((resolve) => setTimeout(resolve, expiry + 100 - Date.now()));
      assert.equal((await send("listDomains", 1, value)).code, "token_expired");
    });

    test("a token is bound to its addresses", async () => {
      const away = await tokenOf(["dns:read"], { AllowedFrom: ["198.51.100.0/24"] });
      assert.deepEqual((await send("listDomains", 1, away)).code, "scope_missing");
      const here = await tokenOf(["dns:read"], { AllowedFrom: ["127.0.0.0/8"] });
      assert.equal((await send("listDomains", 1, here)).status, 200);
    });
  });

/** Returns a body with valid fields, so that the object of the path decides. */
function sampleBody(name: OperationName): string {
  const samples: Partial<Record<OperationName, object>> = {
    changeRecords: { Changes: [{ Op: "Create", TypeRecord: "A", Name: "x", IP: "192.0.2.9" }] },
    importZone: { ZoneFile: "x 60 IN A 192.0.2.9\n" },
    restoreVersion: { Serial: 1 },
    configureVpn: { Tunnels: [] },
    checkFirewall: { Protocol: "Icmp", Source: "192.0.2.1", Destination: "192.0.2.2" },
    startAction: { Type: "PowerOff" },
    openConsole: { Type: "Serial" },
  };
  return JSON.stringify(samples[name] ?? {});
}
