/** The lines of a start about networks, for the operator: what works, what does not, and the command that brings it. */
import { noMounts } from "../../../base/trialtext.ts";
import type { DeviceKind } from "../wireguard/device.ts";
import type { Capabilities } from "./detect.ts";
import type { ToolRights } from "./toolroot.ts";

/** What the lines describe. */
export interface Found {
  readonly capabilities: Pick<Capabilities, "bandwidth" | "nat" | "dhcp" | "kernelEsp">;
  readonly hasIpsec: boolean;
  /** What carries WireGuard tunnels; null: nothing does. */
  readonly wireguard: DeviceKind | null;
  /** Whether daemons of networks see only their own files. */
  readonly hasPrivateRoots: boolean;
  /** Whether daemons of networks get a filter of system calls; null: none is known for this processor. */
  readonly hasFilter: boolean | null;
  /** How far the programs that configure networks are confined. */
  readonly rights: ToolRights;
}

/** Debian packages of the programs that every network needs. */
const packages = { ip: "iproute2", tc: "iproute2", nft: "nftables", sysctl: "procps" } as const;
export const needed = Object.keys(packages) as (keyof typeof packages)[];

const install = (...names: readonly string[]): string => `Run as root: apt-get install ${names.join(" ")}`;

/** Returns why networks are simulated if these programs are missing. */
export function describeMissing(programs: readonly (keyof typeof packages)[]): string {
  const names = [...new Set(programs.map((program) => packages[program]))];
  return `the packages ${names.join(", ")} are not installed. ${install(...names)}`;
}

/** Returns the lines. Lines after the first of a subject begin with blanks. */
export function describeNetworks({ capabilities: can, ...found }: Found): string[] {
  const more = (line: string): string => `          ${line}`;
  const lines = ["networks  real, with a firewall in each"];
  if (!can.bandwidth)
    lines.push(
      more("no bandwidth limits: the kernel has none. Run as root: modprobe -a sch_tbf cls_u32 ifb act_mirred"),
    );
  if (!can.nat)
    lines.push(
      more(
        "private networks do not reach the internet: the kernel cannot translate addresses. Run as root: modprobe nft_masq",
      ),
    );
  if (!can.dhcp) lines.push(more(`servers get no address from the network (DHCP). ${install("dnsmasq-base")}`));
  if (!found.hasPrivateRoots) lines.push(more(`programs for DHCP and tunnels see the files of this host: ${noMounts}`));
  if (found.rights !== "root")
    lines.push(
      more(
        found.rights === "rights"
          ? `programs that configure networks see the files of this host: ${noMounts}`
          : "programs that configure networks have all rights of root: this host does not permit to reduce them. Start Brume on the host itself",
      ),
    );
  if (found.hasFilter === false)
    lines.push(more(`programs for DHCP and tunnels have no filter of system calls. ${install("perl-base")}`));
  if (found.hasFilter === null)
    lines.push(more("programs for DHCP and tunnels have no filter of system calls: there is none for this processor"));
  const slow = "slower, because the kernel cannot encrypt them. Run as root: modprobe";
  lines.push(
    !found.hasIpsec
      ? `IPsec     no tunnels. ${install("charon-systemd")}`
      : `IPsec     tunnels work${can.kernelEsp ? "" : `, ${slow} esp4`}`,
    found.wireguard === null
      ? `WireGuard no tunnels. ${install("wireguard-go")}`
      : `WireGuard tunnels work${found.wireguard === "kernel" ? "" : `, ${slow} wireguard`}`,
  );
  return lines;
}
