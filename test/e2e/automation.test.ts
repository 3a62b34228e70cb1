/**
 * The examples for Terraform and Ansible. The provider Mastercard/restapi cannot be installed here, so its requests are sent for the resources
 * of the file: POST to the path, GET and DELETE of PATH/ID or of the paths in the file, where ID is the attribute of the response, PUT for a change. The playbook runs where
 * Ansible is installed.
 */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { createTestService, type TestService } from "../support/testservice.ts";

const examples = resolve(import.meta.dirname, "../../examples");
const lacksAnsible = spawnSync("ansible-playbook", ["--version"]).status !== 0;
if (lacksAnsible) console.log("the playbook: only read, ansible-playbook is not installed");

let brume: TestService;
before(async () => {
  brume = await createTestService("sqlite");
});
after(() => brume.close());

/** Sends a request as the provider does. */
async function send(
  method: string,
  path: string,
  data?: object,
): Promise<{ status: number; object: Record<string, unknown> }> {
  const response = await fetch(`${brume.url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${brume.token}`, "Content-Type": "application/json", Prefer: "wait=60" },
    ...(data !== undefined && { body: JSON.stringify(data) }),
  });
  const text = await response.text();
  return { status: response.status, object: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>) };
}

test("the requests of the REST provider of Terraform create, read, change and delete the resources of the file", async () => {
  const text = readFileSync(resolve(examples, "terraform/main.tf"), "utf8");
  const paths = [...text.matchAll(/^ {2}path\s+= "([^"]+)"/gm)].map(([, path]) => path);
  assert.deepEqual(paths, ["/server", "/dns", "/dns/recorda"]);
  assert.match(text, /id_attribute\s+= "ID"/);
  const server = await send("POST", "/server", { Name: "web-1", RAM: 256, HDD: 1 });
  const domain = await send("POST", "/dns", { Name: "terraform.example", Labels: { "managed-by": "terraform" } });
  const data = { DomainId: Number(domain.object["ID"]), Name: "www", IP: server.object["IP"], TTL: 300 };
  const record = await send("POST", "/dns/recorda", data);
  for (const { status, object } of [server, domain, record])
    assert.deepEqual([status, typeof object["ID"]], [200, "number"]);
  assert.match(String(server.object["IP"]), /^\d/);
  const of = (path: string, { object }: { object: Record<string, unknown> }) => `${path}/${String(object["ID"])}`;
  assert.match(text, /destroy_path\s+= "\/dns\/\$\{restapi_object\.domain\.id\}\/\{id\}"/);
  assert.match(text, /read_path\s+= "\/dns\/record\/\{id\}"/);
  const read = of("/dns/record", record);
  const places = [read, of("/dns", domain), of("/server", server)];
  for (const each of places) assert.equal((await send("GET", each)).status, 200, each);
  assert.equal((await send("PUT", of("/dns/recorda", record), { ...data, TTL: 600 })).object["TTL"], 600);
  const place = of("/server", server);
  assert.equal((await send("PUT", place, { Name: "web-2", RAM: 256, HDD: 1 })).status, 200);
  assert.equal((await send("GET", place)).object["Name"], "web-2");
  assert.match(text, /create_returns_object = true/);
  assert.doesNotMatch(text, /write_returns_object/);
  assert.equal((await send("PUT", of("/dns", domain), { Name: "terraform.example", Labels: {} })).status, 200);
  for (const each of places) {
    assert.equal((await send("DELETE", each === read ? of(of("/dns", domain), record) : each)).status, 200, each);
    // The provider takes 404 as deleted.
    assert.equal((await send("GET", each)).status, 404, each);
  }
});

test("the playbook creates a domain and a server, and changes nothing the second time", {
  skip: lacksAnsible,
}, async () => {
  const play = async (): Promise<string> => {
    const env = { ...process.env, BRUME_URL: brume.url, BRUME_TOKEN: brume.token, ANSIBLE_NOCOLOR: "1" };
    const args = ["-i", "localhost,", resolve(examples, "ansible/site.yml")];
    return (await promisify(execFile)("ansible-playbook", args, { env, timeout: 120_000 })).stdout;
  };
  assert.match(await play(), /changed=2 .*failed=0/);
  const domain = (await brume.client.listDomains()).find(({ Name }) => Name === "ansible.example");
  assert.equal(domain?.LinkedRecords.length, 1);
  assert.match(await play(), /changed=0 .*failed=0/);
});
