/** Objects for the tests and pictures of the console: what a small installation contains. */
import type { Client } from "@brume/api/client.ts";

export interface Scene {
  /** A running server. */
  readonly server: number;
  /** A domain with records of each type. */
  readonly domain: number;
  /** A webhook whose endpoint does not respond. */
  readonly webhook: number;
}

const zone = `@ 3600 IN A 192.0.2.10
@ 3600 IN AAAA 2001:db8::10
www 3600 IN CNAME @
mail 3600 IN A 192.0.2.25
@ 3600 IN MX 10 mail
@ 3600 IN TXT "v=spf1 mx -all"
_sip._tcp 3600 IN SRV 10 5 5060 mail
api 300 IN A 192.0.2.11
`;

export async function fillService(client: Client): Promise<Scene> {
  const names = ["web-1", "web-2", "db-primary", "build-runner-with-a-rather-long-name"];
  const servers = [];
  for (const [index, Name] of names.entries())
    servers.push(
      await client.createServer(
        {
          body: {
            Name,
            RAM: 256 * (index + 1),
            HDD: 1 + index * 4,
            CPU: 1 + (index % 2),
            Labels: { stage: index < 2 ? "production" : "test" },
          },
        },
        { wait: 60 },
      ),
    );
  const [first, second] = servers;
  if (first === undefined || second === undefined) throw new Error("no server");
  await client.startAction({ path: { id: second.ID }, body: { Type: "PowerOff" } }, { wait: 60 });
  const domain = await client.createDomain({ body: { Name: "example.com", ZoneFile: zone } });
  await client.createDomain({ body: { Name: "пример.example" } });
  const key = Buffer.concat([Buffer.from("\0\0\0\x0bssh-ed25519\0\0\0 "), Buffer.alloc(32, 7)]).toString("base64");
  await client.createSshKey({ body: { Title: "laptop", PublicKey: `ssh-ed25519 ${key} ann@laptop` } });
  await client.createToken({ body: { Name: "monitoring", Scopes: ["metrics:read", "server:read"] } });
  await client.createToken({
    body: { Name: "certificates", Scopes: ["dns:write"], DomainID: domain.ID, RecordPattern: "_acme-challenge*" },
  });
  await client.createImage({ body: { Name: "web-golden", ServerID: first.ID } }, { wait: 60 });
  const webhook = await client.createWebhook({ body: { Url: "http://127.0.0.1:9/hook", Types: ["domain.*"] } });
  await client.createDomain({ body: { Name: "shop.example" } });
  return { server: first.ID, domain: domain.ID, webhook: webhook.ID };
}
