/**
 * A server's rows as the machine that the driver makes true, with what its guest is told about itself. Pure: secrets come opened, names
 * of devices from outside. Rows that are the same give the same machine, to the letter.
 */
import { createHash } from "node:crypto";
import type { SshKeyRow } from "../../catalog/table.ts";
import type { MachineSpec } from "../../drivers/machine/interface.ts";
import { type Guest, type GuestNic, renderSeed } from "../../drivers/machine/seed/files.ts";
import type { NetworkEnvironment as NetworkSurroundings } from "../../network/model/networkspec.ts";
import { address6Of, gateway6Of, macOf, prefixOf, showAddress } from "../../network/model/plan.ts";
import type { LinkedNetwork } from "../links.ts";
import type { ServerRow } from "../table.ts";
import { adminOf } from "./show.ts";

type Surroundings = Pick<NetworkSurroundings, "resolvers" | "forwarders">;

export interface GuestSecrets {
  /** As in /etc/shadow. */
  readonly passwordHash: string;
  readonly userData: string | null;
  readonly keys: readonly SshKeyRow[];
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** The same for the server's whole life, and nobody else's: RFC 9562, version 8. */
export function uuidOf({ id, created }: Pick<ServerRow, "id" | "created">): string {
  const bytes = digest(`brume server ${id} ${created}`).subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** A rebuilt server is a new guest, and so is a copy. */
export const instanceOf = (server: ServerRow): string => `i-${uuidOf(server)}-${server.disk_version}`;

/** For the hash of the password: nobody need guess it, but no two guests have the same. */
export const saltOf = (server: ServerRow): Uint8Array => digest(instanceOf(server)).subarray(0, 16);

/** `places` are those whose cards are to be in the machine. Throws when the user data cannot be read. */
export function renderMachineSpec(
  server: ServerRow,
  places: readonly LinkedNetwork[],
  inside: GuestSecrets,
  surroundings: Surroundings,
): MachineSpec {
  return {
    id: server.id,
    uuid: uuidOf(server),
    name: server.name,
    owner: server.project_id,
    boot: server.boot,
    cpus: server.cpu,
    memory: server.ram,
    share: server.is_high_performance === 1 ? 2 : 1,
    disk: { version: server.disk_version, gb: server.hdd },
    nics: places.map(({ link: { id } }) => ({ id, mac: macOf(id) })),
    seed: renderSeed(guestOf(server, places, inside, surroundings)),
  };
}

function guestOf(
  server: ServerRow,
  places: readonly LinkedNetwork[],
  { passwordHash, userData, keys }: GuestSecrets,
  surroundings: Surroundings,
): Guest {
  const nic = ({ link, network }: LinkedNetwork): GuestNic => {
    const { gateway, first6 } = network;
    return {
      mac: macOf(link.id),
      addresses: [
        `${showAddress(link.ip)}/${prefixOf(network)}`,
        ...(first6 === null ? [] : [`${address6Of(first6, network, link.ip)}/64`]),
      ],
      gateway4: gateway === null ? null : showAddress(gateway),
      gateway6: first6 === null ? null : gateway6Of(first6),
      mtu: null,
      dhcp: false,
    };
  };
  return {
    instanceId: instanceOf(server),
    hostName: server.host_name,
    adminUser: adminOf(server.family),
    passwordHash,
    sshKeys: keys.map(({ type, base64, comment }) => [type, base64, comment].join(" ").trim()),
    nameServers: nameServersOf(places, surroundings),
    nics: places.map(nic),
    userData,
  };
}

/** The edges, where they answer questions, so that those of the networks that stay go on when one goes; else whom the host asks. */
function nameServersOf(places: readonly LinkedNetwork[], { resolvers, forwarders }: Surroundings): readonly string[] {
  const edges = places.flatMap(({ network: { kind, gateway } }) =>
    kind === "private" || gateway === null ? [] : [showAddress(gateway)],
  );
  return forwarders.length > 0 && edges.length > 0 ? edges : resolvers;
}
