/**
 * Renders ready configuration for the far end of a tunnel in the syntax of common programs and routers. The text contains placeholders
 * instead of secrets. Everything is seen from the far end: its local side is our peer side.
 */
import { isIPv4 } from "node:net";
import { formatAddresses, parseAddresses } from "../../../base/address.ts";
import type { IpsecTunnel, WireguardTunnel } from "../interface.ts";
import { life, lines, type NearEnd, placeholder } from "./peertext.ts";
import { cisco, fortigate, mikrotik, mikrotikWireguard } from "./peervendors.ts";
import { espProposal, ikeProposal } from "./proposals.ts";

/** Renders swanctl.conf(5), a file for /etc/swanctl/conf.d. */
function swanctl(tunnel: IpsecTunnel, near: NearEnd): string {
  const { id, localIdentity, peerIdentity, peer } = tunnel;
  const pairs =
    tunnel.ikeVersion === 2
      ? [{ name: `brume-${id}`, far: tunnel.peerSubnets, here: tunnel.localSubnets }]
      : tunnel.peerSubnets.flatMap((far, row) =>
          tunnel.localSubnets.map((here, column) => ({
            name: `brume-${id}-${row}-${column}`,
            far: [far],
            here: [here],
          })),
        );
  const children = pairs.map(
    ({ name, far, here }) => `      ${name} {
        local_ts = ${far.join(",")}
        remote_ts = ${here.join(",")}
        esp_proposals = ${espProposal(tunnel)}
        life_time = ${life.esp}s
        start_action = ${peer === null ? "start" : "none"}
        dpd_action = ${peer === null ? "restart" : "clear"}
        close_action = ${peer === null ? "start" : "none"}
      }`,
  );
  return `connections {
  brume-${id} {
    version = ${tunnel.ikeVersion}
    remote_addrs = ${near.address}
    proposals = ${ikeProposal(tunnel)}
    rekey_time = ${life.ike - 1800}s
    over_time = 1800s
    dpd_delay = 10s
    encap = yes
    mobike = no
    keyingtries = 0
    local {
      auth = psk
      id = ${peerIdentity}
    }
    remote {
      auth = psk
      id = ${localIdentity}
    }
    children {
${children.join("\n")}
    }
  }
}
secrets {
  ike-brume-${id} {
    id-1 = ${peerIdentity}
    id-2 = ${localIdentity}
    secret = "${placeholder.sharedKey}"
  }
}
`;
}

/** Renders ipsec.conf(5) of Libreswan; lines for other files are comments. A host name as identity begins with `@`. */
function libreswan(tunnel: IpsecTunnel, near: NearEnd): string {
  const { id, localIdentity, peerIdentity, encryption, digest, dhGroup } = tunnel;
  const v2 = tunnel.ikeVersion === 2;
  const idOf = (identity: string): string => (isIPv4(identity) || identity.includes("@") ? identity : `@${identity}`);
  const cipher = encryption === "aes128gcm" ? "aes_gcm128" : encryption;
  const esp = encryption === "aes128gcm" ? cipher : `${cipher}-${digest}`;
  const many = (name: string, blocks: readonly string[]): string =>
    blocks.length === 1 ? `    ${name}=${blocks[0]}` : `    ${name}s={${blocks.join(" ")}}`;
  const [far, ours] = [idOf(peerIdentity), idOf(localIdentity)];
  return lines(
    `# In ipsec.secrets: ${far} ${ours} : PSK "${placeholder.sharedKey}"`,
    v2 ? [] : ["# In ipsec.conf, below `config setup`: ikev1-policy=accept"],
    `conn brume-${id}`,
    `    ikev2=${v2 ? "insist" : "no"}`,
    "    authby=secret",
    "    left=%defaultroute",
    `    leftid=${far}`,
    many("leftsubnet", tunnel.peerSubnets),
    `    right=${near.address}`,
    `    rightid=${ours}`,
    many("rightsubnet", tunnel.localSubnets),
    `    ike=${cipher}-${digest};dh${dhGroup}`,
    `    esp=${esp}${tunnel.perfectForwardSecrecy ? `;dh${dhGroup}` : ""}`,
    `    pfs=${tunnel.perfectForwardSecrecy ? "yes" : "no"}`,
    `    ikelifetime=${life.ike}s`,
    `    salifetime=${life.esp}s`,
    "    encapsulation=yes",
    "    dpddelay=10",
    v2 ? [] : ["    dpdtimeout=30"],
    `    dpdaction=${tunnel.peer === null ? "restart" : "hold"}`,
    `    auto=${tunnel.peer === null ? "start" : "add"}`,
  );
}

/** Returns the far end's own addresses: its single addresses, else the first of its network, as usual for a router. */
function ownAddresses({ peerSubnets }: WireguardTunnel): readonly string[] {
  const single = peerSubnets.filter((block) => block.endsWith("/32"));
  if (single.length > 0) return single;
  const first = parseAddresses(peerSubnets[0] ?? "0.0.0.0/0").first + 1n;
  return [`${formatAddresses(4, { first, last: first })}/32`];
}

/** Renders a file for wg-quick(8) and programs that import such files. */
const wgQuick = (tunnel: WireguardTunnel, near: NearEnd): string =>
  wg(tunnel, near, [`Address = ${ownAddresses(tunnel).join(", ")}`, `MTU = ${Math.min(tunnel.mtu, 1420)}`]);

/** Renders a file for wg(8) `setconf`, which has no addresses. `device`: lines about the interface itself. */
function wg(tunnel: WireguardTunnel, near: NearEnd, device: readonly string[] = []): string {
  const port = /:(\d+)$/.exec(tunnel.endpoint ?? "")?.[1];
  const parts = [
    "[Interface]",
    `PrivateKey = ${placeholder.privateKey}`,
    ...device.filter((line) => line.startsWith("Address")),
    ...(port === undefined ? [] : [`ListenPort = ${port}`]),
    ...device.filter((line) => !line.startsWith("Address")),
    "",
    "[Peer]",
    `PublicKey = ${near.wireguard?.publicKey ?? ""}`,
    ...(tunnel.presharedKey === null ? [] : [`PresharedKey = ${placeholder.sharedKey}`]),
    `Endpoint = ${near.address}:${near.wireguard?.listenPort ?? ""}`,
    `AllowedIPs = ${tunnel.localSubnets.join(", ")}`,
    ...(tunnel.keepAlive > 0 ? [`PersistentKeepalive = ${tunnel.keepAlive}`] : []),
  ];
  return lines(parts);
}

/** Renderers by dialect. The first of each is the default. */
export const ipsecDialects = { strongswan: swanctl, libreswan, mikrotik, cisco, fortigate } as const;
export const wireguardDialects = {
  "wg-quick": wgQuick,
  wg: (tunnel: WireguardTunnel, near: NearEnd) => wg(tunnel, near),
  mikrotik: mikrotikWireguard,
} as const;

export type IpsecDialect = keyof typeof ipsecDialects;
export type WireguardDialect = keyof typeof wireguardDialects;

/** Renders the configuration. Null: tunnels of this type have no such dialect. */
export function renderPeerConfig(
  tunnel: IpsecTunnel | WireguardTunnel,
  near: NearEnd,
  dialect?: string,
): string | null {
  if (tunnel.type === "ipsec") {
    const known = Object.hasOwn(ipsecDialects, dialect ?? "strongswan");
    return known ? ipsecDialects[(dialect ?? "strongswan") as IpsecDialect](tunnel, near) : null;
  }
  const known = Object.hasOwn(wireguardDialects, dialect ?? "wg-quick");
  return known ? wireguardDialects[(dialect ?? "wg-quick") as WireguardDialect](tunnel, near) : null;
}
