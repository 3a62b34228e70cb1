/**
 * Builds the spec of a VM, and the seed of its guest, from the rows of a server. Pure: secrets are passed in plain text, device names come
 * from the environment. Equal rows give an identical spec.
 */
import { createHash } from "node:crypto";
import type { SshKeyRow } from "../../catalog/table.ts";
import type { MachineSpec } from "../../drivers/machine/interface.ts";
import { type Guest, type GuestNic, renderSeed } from "../../drivers/machine/seed/files.ts";
import type { NetworkEnvironment } from "../../network/model/networkspec.ts";
import { address6Of, gateway6Of, macOf, prefixOf, showAddress } from "../../network/model/plan.ts";
import type { LinkedNetwork } from "../links.ts";
import type { ServerRow } from "../table.ts";
import { adminOf } from "./show.ts";

/** The resolvers and forwarders of the host. */
type Surroundings = Pick<NetworkEnvironment, "resolvers" | "forwarders">;

/** Secrets of a guest in plain text. */
export interface GuestSecrets {
  /** Returns it in the format of /etc/shadow, which takes 1 ms. */
  readonly passwordHash: () => string;
  readonly userData: string | null;
  readonly keys: readonly SshKeyRow[];
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Returns the UUID of a server: unique and constant for its life (RFC 9562, version 8). */
export function uuidOf({ id, created }: Pick<ServerRow, "id" | "created">): string {
  const bytes = digest(`brume server ${id} ${created}`).subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Returns the instance id for cloud-init. It changes with a rebuild or a copy, so that the guest is configured again. */
const instanceOf = (server: ServerRow): string => `i-${uuidOf(server)}-${server.disk_version}`;

/** Returns the salt of the password hash. It is not secret, but different for each guest. */
export const saltOf = (server: ServerRow): Uint8Array => digest(instanceOf(server)).subarray(0, 16);

/**
 * Returns the spec of a VM with a NIC for each of `linked`. Its seed is rendered when it is first read: most calls of a driver do not need
 * it. That read throws if the user data cannot be parsed.
 */
export function renderMachineSpec(
  server: ServerRow,
  linked: readonly LinkedNetwork[],
  secrets: GuestSecrets,
  surroundings: Surroundings,
): MachineSpec {
  let seed: MachineSpec["seed"] | undefined;
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
    nics: linked.map(({ link: { id } }) => ({ id, mac: macOf(id) })),
    get seed() {
      seed ??= renderSeed(guestOf(server, linked, secrets, surroundings));
      return seed;
    },
  };
}

function guestOf(
  server: ServerRow,
  linked: readonly LinkedNetwork[],
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
    passwordHash: passwordHash(),
    sshKeys: keys.map(({ type, base64, comment }) => [type, base64, comment].join(" ").trim()),
    nameServers: nameServersOf(linked, surroundings),
    nics: linked.map(nic),
    userData,
  };
}

/** Returns the name servers of a guest: the edge routers of its networks if they forward queries, else the resolvers of the host. */
function nameServersOf(linked: readonly LinkedNetwork[], { resolvers, forwarders }: Surroundings): readonly string[] {
  const edges = linked.flatMap(({ network: { kind, gateway } }) =>
    kind === "private" || gateway === null ? [] : [showAddress(gateway)],
  );
  return forwarders.length > 0 && edges.length > 0 ? edges : resolvers;
}
