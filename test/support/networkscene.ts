/** Networks for the tests and pictures of the console: a public network with firewall and tunnels, and a private one. */
import type { Client } from "@brume/api/client.ts";

export interface NetworkScene {
  /** A public network with two servers, five rules and three tunnels. */
  readonly network: number;
  readonly privateNetwork: number;
}

export async function fillNetworks(client: Client): Promise<NetworkScene> {
  const { Id: network, CIDR } = await client.createPublicNetwork(
    { body: { Name: "shop", NetworkCapacity: "28", Bandwidth: 400, Labels: { stage: "production" } } },
    { wait: 60 },
  );
  const { ID: privateNetwork } = await client.createNetwork(
    { body: { Name: "storage", CIDR: "172.16.5.0/24" } },
    { wait: 60 },
  );
  await client.createPublicNetwork({ body: { Name: "lab" } }, { wait: 60 });
  const addresses: string[] = [];
  for (const [Name, NetworkID] of [
    ["front-1", network],
    ["front-2", network],
    ["store-1", privateNetwork],
  ] as const) {
    const made = await client.createServer({ body: { Name, NetworkID } }, { wait: 60 });
    addresses.push(made.LinkedNetworks[0]?.IP ?? "");
    if (Name === "front-2")
      await client.startAction(
        { path: { id: made.ID }, body: { Type: "AddNetwork", NetworkID: privateNetwork } },
        { wait: 60 },
      );
  }
  const rule = { Action: "Allow", Protocol: "Tcp", Destination: "internal" } as const;
  await client.configureFirewall({
    path: { id: network },
    body: {
      Rules: [
        { ...rule, Name: "Web", DestinationPort: "80,443" },
        { ...rule, Name: "SSH from the office", Source: "203.0.113.0/24", DestinationPort: "22" },
        { ...rule, Name: "No database from outside", Action: "Deny", Source: "external", DestinationPort: "5432" },
        { ...rule, Name: "Metrics of one server", Destination: addresses[0] ?? CIDR, DestinationPort: "9100" },
        { Name: "Everything out", Action: "Allow", Source: "internal", Destination: "external" },
      ],
    },
  });
  await client.configureVpn({
    path: { id: network },
    body: {
      Tunnels: [
        { Name: "office", PeerNetwork: "10.20.0.0/24", PeerEndpoint: "203.0.113.50", SharedKey: "not-a-real-key-0001" },
        {
          Name: "phone",
          Type: "WireGuard",
          PeerNetwork: "10.21.0.2/32",
          PeerPublicKey: Buffer.alloc(32, 1).toString("base64"),
        },
        { Name: "branch", PeerNetwork: "10.22.0.0/16", PeerEndpoint: "198.51.100.9", Enabled: false },
      ],
    },
  });
  return { network, privateNetwork };
}
