/** Specs of networks for tests: a small public network, with fields that the test replaces. */
import type { Firewall, NetworkSpec, Port, Rule } from "../../service/src/drivers/router/interface.ts";

export const open: Firewall = { enabled: false, allow: false, rules: [] };

export const rule = (spec: Partial<Rule> = {}): Rule => ({
  allow: true,
  protocol: "any",
  source: "any",
  sourcePort: "any",
  destination: "any",
  destinationPort: "any",
  ...spec,
});

export const firewall = (...rules: Rule[]): Firewall => ({ enabled: true, allow: false, rules });

export function image(spec: Partial<NetworkSpec> = {}): NetworkSpec {
  const v4 = spec.v4 ?? { cidr: "10.64.0.8/29", gateway: "10.64.0.9" };
  return {
    id: 7,
    generation: 1,
    kind: "public",
    v4,
    v6: null,
    edgeAddress: "10.64.255.2",
    nat: "never",
    mtu: 1500,
    bandwidth: null,
    firewall: open,
    tunnels: [],
    wireguard: null,
    ports: [],
    dhcp: { enabled: false, router: v4.gateway, dns: [] },
    dnsForwarders: [],
    closed: [],
    ...spec,
  };
}

/** Returns port `id` with this address. Its MAC address contains the id. */
export const port = (id: number, address: string, spec: Partial<Port> = {}): Port => ({
  id,
  device: `lt${id}`,
  mac: `02:42:00:00:00:${id.toString(16).padStart(2, "0")}`,
  addresses: [address],
  bandwidth: null,
  name: `server-${id}`,
  ...spec,
});
