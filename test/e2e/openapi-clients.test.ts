/**
 * Clients that generators create from `/openapi.json` call the running service as generated, without an edit: types of TypeScript by
 * openapi-typescript, used with openapi-fetch, and a class of Perl by OpenAPI::Client.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { contract } from "@brume/api/contract.ts";
import { recordTypes } from "@brume/api/dns.ts";
import openapiTypescript, { astToString } from "openapi-typescript";
import { openapiSchema } from "../invariants/openapi-schema.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "brume-generated-"));

let brume: TestService;
before(async () => {
  brume = await createTestService("sqlite");
});
after(async () => {
  await brume.close();
  rmSync(folder, { recursive: true, force: true });
});
/** Where the set-up unpacks modules of Perl without root. */
const perlFolders = globSync(join(root, ".engines/usr/{share/perl5,lib/*/perl5/*}"));
const environment = () => ({ ...process.env, URL: brume.url, TOKEN: brume.token });

const typescriptProgram = `
import createClient from "openapi-fetch";
import type { components, paths } from "./generated.ts";

const headers = { Authorization: \`Bearer \${process.env["TOKEN"]}\` };
const client = createClient<paths>({ baseUrl: process.env["URL"] ?? "", headers });
const domain = await client.POST("/dns", { body: { Name: "typescript.example" } });
if (domain.data === undefined) throw new Error(domain.error.Message);
const { ID } = domain.data;
const record = await client.POST("/dns/recordmx", {
  params: { header: { Prefer: "handling=strict" } },
  body: { DomainId: ID, HostName: "mail", Name: "@", Priority: 10 },
});
const shown = await client.GET("/dns/{id}", { params: { path: { id: ID } } });
// An object that was read is a valid change.
const { Labels, ...rest } = shown.data as components["schemas"]["Domain"];
const changed = await client.PUT("/dns/{id}", {
  params: { path: { id: ID }, header: { Prefer: "handling=strict" } },
  body: { ...rest, Labels: { ...Labels, by: "typescript" } },
});
const server = await client.POST("/server", { body: { Name: "web", ImageID: 1, CPU: 1 } });
const action = await client.POST("/server/{id}/action", {
  params: { path: { id: server.data?.ID ?? 0 }, query: { dryRun: true } },
  body: { Type: "PowerOff" },
});
const again = await client.POST("/dns", { body: { Name: "typescript.example" } });
const page = await client.GET("/dns", { params: { query: { name: "typescript.*", limit: 1 } } });
// @ts-expect-error Scopes are required.
await client.POST("/token", { body: { Name: "a" } });
// @ts-expect-error A name is text.
await client.POST("/network", { body: { Name: {} } });
// @ts-expect-error There is no such path.
await client.GET("/domain");
const code: components["schemas"]["Problem"]["code"] | undefined = again.error?.code;
console.log(JSON.stringify({
  record: [record.data?.TypeRecord, record.data?.Priority],
  labels: changed.data?.Labels, error: changed.error,
  server: server.data?.Name, action: action.data?.Type, again: [again.response.status, code],
  page: page.data?.map(({ Name }) => Name),
}));
`;

/**
 * For each edit, the path of the read, the field of the answer that is sent back (empty: all of it), and the path of the edit. The answer must have the type
 * of the update; `contract-echo.test.ts` sends the values.
 */
const echoes: readonly (readonly [read: string, field: string, edit: string])[] = [
  ["/server/{id}", "", "/server/{id}"],
  ["/dns/{id}", "", "/dns/{id}"],
  ...recordTypes.map((type) => ["/dns/record/{id}", "", `/dns/record${type.toLowerCase()}/{id}`] as const),
  ["/network/{id}", "", "/network/{id}"],
  ["/publicnetwork/{id}", "", "/publicnetwork/{id}"],
  ["/publicnetwork/{id}", "Firewall", "/publicnetwork/{id}/firewall"],
  ["/publicnetwork/{id}", "Vpn", "/publicnetwork/{id}/vpn"],
  ["/project/{id}", "", "/project/{id}"],
];

/** A module that compiles if each answer has the type of its update, and if this type is not `any`. */
const echoModule = `
import type { paths } from "./generated.ts";
type Json<T> = T extends { content: { "application/json": infer J } } ? J : never;
type Read<P extends keyof paths> = paths[P] extends { get: { responses: { 200: infer R } } } ? Json<R> : never;
type Update<P extends keyof paths> = paths[P] extends { put: { requestBody?: infer B } } ? Json<Exclude<B, undefined>> : never;
${echoes
  .map(
    ([read, field, edit], at) => `
export const echo${at} = (read: Read<"${read}">): Update<"${edit}"> => read${field && `.${field}`};
// @ts-expect-error A text is no update.
export const wrong${at}: Update<"${edit}"> = "text";`,
  )
  .join("\n")}
`;

test("every edit of the contract is checked with the generated types", () => {
  const edits = Object.values(contract).filter((op) => op.method === "PUT" && !("content" in op));
  // A zone file is text, and the answer to it is another one.
  const wanted = edits.map(({ path }) => path as string).filter((path) => path !== contract.importZone.path);
  assert.deepEqual(echoes.map(([, , edit]) => edit).sort(), wanted.sort());
});

test("openapi-typescript: a program with the generated types compiles and runs", async () => {
  const document = (await (await fetch(`${brume.url}/openapi.json`)).json()) as Parameters<typeof openapiTypescript>[0];
  mkdirSync(join(folder, "node_modules"));
  for (const name of ["openapi-fetch", "openapi-typescript-helpers", "@types"])
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(join(folder, "generated.ts"), astToString(await openapiTypescript(document)));
  writeFileSync(join(folder, "program.ts"), typescriptProgram);
  writeFileSync(join(folder, "echo.ts"), echoModule);
  const options =
    "--noEmit --strict --exactOptionalPropertyTypes --module nodenext --target esnext --skipLibCheck --types node --allowImportingTsExtensions";
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const argv = [tsc, ...options.split(" "), "program.ts", "echo.ts"];
  await run(process.execPath, argv, { cwd: folder }).catch((error: unknown) => {
    const { stdout, message } = error as Error & { readonly stdout?: string };
    assert.fail(stdout || message);
  });
  const { stdout } = await run(process.execPath, ["program.ts"], { cwd: folder, env: environment() });
  assert.deepEqual(JSON.parse(stdout), {
    record: ["MX", "10"],
    labels: { by: "typescript" },
    server: "web",
    action: "PowerOff",
    again: [409, "domain_exists"],
    page: ["typescript.example"],
  });
});

const perlProgram = `
use strict; use warnings; use OpenAPI::Client; use Mojo::JSON qw(encode_json);
my $client = OpenAPI::Client->new("$ENV{URL}/openapi.json", base_url => $ENV{URL});
$client->ua->on(start => sub { $_[1]->req->headers->authorization("Bearer $ENV{TOKEN}") });
my $domain = $client->createDomain({}, json => { Name => "perl.example" })->res->json;
my $record = $client->createRecordA({}, json => { DomainId => $domain->{ID}, Name => "www", IP => "192.0.2.1" });
my $server = $client->createServer({ Prefer => "wait=30" }, json => { Name => "perl", ImageID => 1 });
my $list = $client->listDomains({ name => "perl.*", limit => 1 })->res->json;
my $again = $client->createDomain({}, json => { Name => "perl.example" });
my $invalid = $client->createDomain({}, json => { Title => "perl.example" });
my $missing = $client->readDomain({ id => 99999 });
print encode_json({
  domain => $domain->{Name}, record => $record->res->json->{IP}, server => $server->res->json->{State},
  again => [0 + $again->res->code, $again->res->json->{code}], invalid => $invalid->error->{message},
  list => [map { $_->{Name} } @$list], missing => $missing->res->json->{code}, deleted => 0 + $client->deleteDomain({ id => $domain->{ID} })->res->code,
});
`;

test("OpenAPI::Client: a generated class of Perl calls the service", async () => {
  // It reads the schema of OpenAPI 3.1 from its publisher. In this test it finds it in its cache.
  const cache = join(folder, "cache");
  mkdirSync(cache);
  const address = "https://spec.openapis.org/oas/3.1/schema/2021-05-20";
  writeFileSync(join(cache, createHash("md5").update(address).digest("hex")), JSON.stringify(openapiSchema));
  writeFileSync(join(folder, "program.pl"), perlProgram);
  const { stdout, stderr } = await run("perl", [join(folder, "program.pl")], {
    env: { ...environment(), JSON_VALIDATOR_CACHE_PATH: cache, PERL5LIB: perlFolders.join(":") },
  });
  assert.equal(stderr, "");
  assert.deepEqual(JSON.parse(stdout), {
    domain: "perl.example",
    record: "192.0.2.1",
    server: "Active",
    again: [409, "domain_exists"],
    invalid: "Invalid input",
    list: ["perl.example"],
    missing: "domain_not_found",
    deleted: 200,
  });
});
