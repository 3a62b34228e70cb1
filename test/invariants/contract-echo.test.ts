/**
 * docs/spec.md#put-what-get-shows-changes-nothing for every edit of the contract: an object that is sent back as read does not change, in
 * lenient and in strict mode. A new edit does not compile without an entry in the table.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Contract, contract, type OperationName } from "@brume/api/contract.ts";
import { type RecordFields, type RecordType, recordTypes } from "@brume/api/dns.ts";
import { onSqliteFirst } from "../support/harness.ts";

/** Changes whose body has fields. */
type EditName = {
  [N in OperationName]: Contract[N] extends { readonly method: "PUT"; readonly body: object } ? N : never;
}[OperationName];

/** Path of the read, request line of the edit (`PUT /dns/3`) and its body. */
interface Echo {
  readonly read: string;
  readonly put: string;
  readonly part?: (shown: Record<string, unknown>) => object;
}

const records: Readonly<Record<RecordType, RecordFields>> = {
  A: { Name: "www", IP: "192.0.2.1" },
  AAAA: { Name: "www", IP: "2001:db8::1" },
  CNAME: { MnemonicName: "blog", Name: "@" },
  MX: { Name: "@", HostName: "mail", Priority: 10 },
  NS: { HostName: "lab", Name: "ns.example.net" },
  SRV: { Service: "sip", Proto: "tcp", Priority: 1, Weight: 2, Port: 5060, Target: "." },
  TXT: { Name: "привет", Text: 'a "quoted" text' },
};

onSqliteFirst("an object that was read", (harness) => {
  const wait = { wait: 60 };

  async function recordEcho(type: RecordType): Promise<Echo> {
    const { ID: DomainId } = await harness.domain();
    const { ID } = await harness.client[`createRecord${type}`]({
      body: { DomainId, TTL: 60, Labels: { a: "b" }, ...records[type] },
    });
    return { read: `/dns/record/${ID}`, put: `PUT /dns/record${type.toLowerCase()}/${ID}` };
  }

  async function publicNetwork(): Promise<string> {
    const body = { Name: "dmz", Bandwidth: 50, Labels: { a: "b" } };
    const { Id, CIDR } = await harness.client.createPublicNetwork({ body }, wait);
    const path = { id: Id };
    const Rules = [
      { Action: "Allow", Protocol: "Tcp", DestinationPort: "80,443", Source: "external" },
      { Name: "ping", Action: "Allow", Protocol: "Icmp", Source: "internal" },
    ] as const;
    await harness.client.configureFirewall({ path, body: { Enabled: true, Rules: [...Rules] } }, wait);
    const PeerPublicKey = "c29tZSBrZXkgb2YgdGhpcnR5LXR3byBieXRlcyBoZXI=";
    const office = { Name: "office", PeerNetwork: "10.1.0.0/24", PeerEndpoint: "203.0.113.5", LocalNetwork: CIDR };
    const wireguardTunnel = { Name: "road", Type: "WireGuard", PeerNetwork: "10.2.0.0/24", PeerPublicKey } as const;
    await harness.client.configureVpn({ path, body: { Tunnels: [office, wireguardTunnel] } }, wait);
    return `/publicnetwork/${Id}`;
  }

  const echoes: Readonly<Record<EditName, () => Promise<Echo>>> = {
    async updateServer() {
      const key = await harness.client.createSshKey({
        body: {
          Title: "k",
          PublicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJnoj7QFKwLBfnZlMjNL6vDk9X6Tn0aHQm8aTzS1vqTo",
        },
      });
      const { ID } = await harness.client.createServer({ body: { Name: "web", SshKeys: [key.ID] } }, wait);
      return { read: `/server/${ID}`, put: `PUT /server/${ID}` };
    },
    async updateDomain() {
      const { ID } = await harness.domain({ Labels: { a: "b" }, Ip: "192.0.2.1" });
      return { read: `/dns/${ID}`, put: `PUT /dns/${ID}` };
    },
    async importZone() {
      const { ID } = await harness.domain({ Ip: "192.0.2.1" });
      const path = { id: ID };
      const ZoneFile = await harness.client.text("readDomain", { path });
      return { read: `/dns/${ID}`, put: `PUT /dns/${ID}/zonefile`, part: () => ({ ZoneFile, Mode: "Replace" }) };
    },
    ...(Object.fromEntries(recordTypes.map((type) => [`updateRecord${type}`, () => recordEcho(type)])) as Record<
      `updateRecord${RecordType}`,
      () => Promise<Echo>
    >),
    async updatePublicNetwork() {
      const read = await publicNetwork();
      return { read, put: `PUT ${read}` };
    },
    async configureFirewall() {
      const read = await publicNetwork();
      return { read, put: `PUT ${read}/firewall`, part: ({ Firewall }) => Firewall as object };
    },
    async configureVpn() {
      const read = await publicNetwork();
      return { read, put: `PUT ${read}/vpn`, part: ({ Vpn }) => Vpn as object };
    },
    async updateNetwork() {
      const { ID } = await harness.client.createNetwork({ body: { Name: "back", Labels: { a: "b" } } }, wait);
      return { read: `/network/${ID}`, put: `PUT /network/${ID}` };
    },
    async updateProject() {
      const body = { Name: `p${Math.random()}`, Quotas: { Servers: 3 }, Labels: { a: "b" } };
      const { ID } = await harness.client.createProject({ body });
      return { read: `/project/${ID}`, put: `PUT /project/${ID}` };
    },
  };

  test("every edit has an entry", () => {
    // The content of an image is bytes, and is not read back.
    const edits = Object.entries(contract).filter(([, op]) => op.method === "PUT" && !("content" in op));
    assert.deepEqual(Object.keys(echoes).sort(), edits.map(([name]) => name).sort());
  });

  test("names its image by id or by name", async () => {
    for (const ImageID of [1, "1", "brume-tiny"]) {
      const body = { Name: "web", ImageID };
      const response = await harness.request("POST /server?dryRun=true", body, { Prefer: "handling=strict" });
      assert.equal(response.status, 200, response.text);
    }
  });

  for (const [name, open] of Object.entries(echoes))
    test(`can be sent back: ${name}`, async () => {
      const { read, put, part = (shown) => shown } = await open();
      const before = await harness.request(`GET ${read}`);
      for (const handling of ["lenient", "strict"]) {
        const body = part(before.json as Record<string, unknown>);
        const response = await harness.request(put, body, { Prefer: `handling=${handling}, wait=20` });
        assert.equal(response.status, 200, `${handling}: ${response.text}`);
        const after = await harness.request(`GET ${read}`);
        assert.deepEqual([after.json, after.headers.get("etag")], [before.json, before.headers.get("etag")], handling);
      }
    });
});
