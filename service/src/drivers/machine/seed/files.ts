/**
 * Renders the seed of a guest in two formats: for cloud-init's NoCloud (`user-data`, `meta-data`, `network-config`, written as JSON, which
 * is valid YAML), and `seed.env`, shell text for Tiny Linux. Names, keys and addresses come from users: each is validated and also quoted.
 */
import { isIP, isIPv4, isIPv6 } from "node:net";
import { quoteShell } from "../../../base/quote.ts";
import type { SeedFile } from "../interface.ts";
import { joinUserData, readUserData, scriptOf } from "./userdata.ts";

/** Network settings of one NIC. */
export interface GuestNic {
  /** Six pairs of lower-case hexadecimal digits with colons. */
  readonly mac: string;
  /** With prefix length: `10.64.0.9/29`, `fd24::9/64`. */
  readonly addresses: readonly string[];
  /** Default routes. The first NIC with one is preferred; the next is the fallback. */
  readonly gateway4: string | null;
  readonly gateway6: string | null;
  readonly mtu: number | null;
  /** Use DHCP for settings that are missing here. */
  readonly dhcp: boolean;
}

/** All settings of a guest. */
export interface Guest {
  /** With a new id the guest initializes itself again: host keys, machine id, password, user data. */
  readonly instanceId: string;
  readonly hostName: string;
  readonly adminUser: string;
  /** Hash as in /etc/shadow; null: no login by password. */
  readonly passwordHash: string | null;
  /** Lines as in `authorized_keys`. */
  readonly sshKeys: readonly string[];
  readonly nameServers: readonly string[];
  readonly nics: readonly GuestNic[];
  readonly userData: string | Uint8Array | null;
}

/** Returns the line that a guest prints on its serial console when a boot is complete. */
export const readyMark = (instanceId: string): string => `BRUME-READY instance=${instanceId}`;

/** Returns the files of the seed volume. Throws if a setting is invalid or the user data cannot be read. */
export function renderSeed(guest: Guest): SeedFile[] {
  check(guest);
  const data = guest.userData === null ? null : readUserData(guest.userData);
  const script = data === null ? null : scriptOf(data);
  const config = `#cloud-config\n${JSON.stringify(cloudConfig(guest, data !== null), null, 1)}\n`;
  return [
    { name: "meta-data", content: print({ "instance-id": guest.instanceId, "local-hostname": guest.hostName }) },
    { name: "network-config", content: print(networkConfig(guest)) },
    { name: "user-data", content: data === null ? config : joinUserData(data, config) },
    { name: "seed.env", content: environment(guest) },
    ...(script === null ? [] : [{ name: "user-script", content: script }]),
  ];
}

const print = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;

function check(guest: Guest): void {
  const require = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`seed: ${what}`);
  };
  const isPrefix = (text: string) => {
    const [address = "", length = "", ...rest] = text.split("/");
    return (
      isIP(address) !== 0 && /^\d{1,3}$/.test(length) && Number(length) <= (isIPv4(address) ? 32 : 128) && !rest[0]
    );
  };
  require(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(
    guest.instanceId,
  ), "the instance id must consist of letters, digits, . _ -");
  require(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(
    guest.hostName,
  ), "the host name must consist of letters, digits and hyphens");
  require(/^[A-Za-z_][A-Za-z0-9_-]{0,31}$/.test(
    guest.adminUser,
  ), "the user name must consist of letters, digits, _ and -");
  require(guest.passwordHash === null ||
    /^\$[0-9a-z]+\$[./0-9A-Za-z$=,]+$/.test(guest.passwordHash), "the password hash is invalid");
  for (const key of guest.sshKeys) require(/^[^\p{Cc}]+$/u.test(key), "an SSH key must be one line");
  for (const address of guest.nameServers) require(isIP(address) !== 0, "a name server must be an IP address");
  for (const nic of guest.nics) {
    require(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(nic.mac), "a MAC address is invalid");
    require(nic.addresses.every(isPrefix), "an address of a NIC must have a prefix length");
    require(nic.gateway4 === null || isIPv4(nic.gateway4), "gateway4 must be an IPv4 address");
    require(nic.gateway6 === null || isIPv6(nic.gateway6), "gateway6 must be an IPv6 address");
    require(nic.mtu === null ||
      (Number.isInteger(nic.mtu) && nic.mtu >= 68 && nic.mtu <= 65_535), "an MTU must be from 68 to 65535");
  }
}

/** Returns `seed.env`. `CARDS` has one line per NIC: `mac|v4 …|gateway4|v6 …|gateway6|mtu|dhcp`; each field may be empty. */
function environment(guest: Guest): string {
  const nic = ({ mac, addresses, gateway4, gateway6, mtu, dhcp }: GuestNic) => {
    const [v4, v6] = [addresses.filter((text) => !text.includes(":")), addresses.filter((text) => text.includes(":"))];
    return [mac, v4.join(" "), gateway4 ?? "", v6.join(" "), gateway6 ?? "", mtu ?? "", dhcp ? "dhcp" : ""].join("|");
  };
  const values = {
    INSTANCE_ID: guest.instanceId,
    HOST_NAME: guest.hostName,
    PASSWORD_HASH: guest.passwordHash ?? "*",
    SSH_KEYS: guest.sshKeys.join("\n"),
    NAME_SERVERS: guest.nameServers.join(" "),
    CARDS: guest.nics.map(nic).join("\n"),
  };
  return Object.entries(values)
    .map(([name, value]) => `${name}=${quoteShell(value)}\n`)
    .join("");
}

/**
 * Metric of the default route of the first NIC, plus one for each further NIC, as in `guest/tiny/root/etc/card`: of routes with the same
 * metric the kernel accepts only the first. DHCP routes have a metric of 1024.
 */
const firstMetric = 101;

/** Returns the network config in Netplan's format, version 2. */
function networkConfig(guest: Guest): unknown {
  const nic = ({ mac, addresses, gateway4, gateway6, mtu, dhcp }: GuestNic, index: number) => ({
    match: { macaddress: mac },
    dhcp4: dhcp,
    // The boot waits only for the first NIC.
    ...(index > 0 && { optional: true }),
    ...(mtu !== null && { mtu }),
    ...(addresses.length > 0 && {
      addresses,
      // Otherwise systemd waits 15 seconds at each boot for router advertisements that never arrive.
      "accept-ra": false,
      ...(guest.nameServers.length > 0 && { nameservers: { addresses: guest.nameServers } }),
      routes: [
        ...(gateway4 === null ? [] : [{ to: "0.0.0.0/0", via: gateway4, metric: firstMetric + index }]),
        ...(gateway6 === null ? [] : [{ to: "::/0", via: gateway6, metric: firstMetric + index }]),
      ],
    }),
  });
  return {
    version: 2,
    ethernets: Object.fromEntries(guest.nics.map((each, index) => [`card${index}`, nic(each, index)])),
  };
}

/**
 * Returns a script for every boot. For a new instance, cloud-init creates new host keys but keeps the machine id; the script renews it if
 * the disk belonged to another instance. On a new disk, systemd creates the first id.
 */
const renewMachineId = (instanceId: string): string => `seen=/etc/brume-instance
was=$(cat $seen 2>/dev/null)
[ "$was" = ${quoteShell(instanceId)} ] && exit
if [ -n "$was" ]; then
  rm -f /etc/machine-id /var/lib/dbus/machine-id
  if command -v systemd-machine-id-setup >/dev/null; then
    systemd-machine-id-setup
    systemctl --no-block try-restart systemd-journald
  else tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id; fi
fi
printf '%s\\n' ${quoteShell(instanceId)} >$seen`;

/**
 * Returns the cloud-config of Brume. `isJoined`: the user's config precedes it. Then the user's values win, and lists (users, files,
 * commands) are the user's followed by ours, so that the mark is printed last.
 */
function cloudConfig(guest: Guest, isJoined: boolean): unknown {
  const mark = readyMark(guest.instanceId);
  const isRoot = guest.adminUser === "root";
  return {
    ...(isJoined && {
      merge_how: [
        { name: "dict", settings: ["no_replace", "recurse_list"] },
        { name: "list", settings: ["append"] },
      ],
    }),
    hostname: guest.hostName,
    manage_etc_hosts: "localhost",
    disable_root: !isRoot,
    ssh_pwauth: guest.passwordHash !== null,
    users: [
      {
        name: guest.adminUser,
        lock_passwd: guest.passwordHash === null,
        ...(guest.passwordHash !== null && { hashed_passwd: guest.passwordHash }),
        ssh_authorized_keys: guest.sshKeys,
        ...(!isRoot && { sudo: "ALL=(ALL) NOPASSWD:ALL", shell: "/bin/bash" }),
      },
    ],
    // sshd uses the first value it finds; by default root cannot log in by password.
    ...(isRoot && {
      write_files: [
        { path: "/etc/ssh/sshd_config.d/01-brume.conf", permissions: "0644", content: "PermitRootLogin yes\n" },
      ],
    }),
    // NICs that were added after the first boot are configured at the next boot.
    updates: { network: { when: ["boot"] } },
    bootcmd: [["sh", "-c", renewMachineId(guest.instanceId)]],
    // The mark is printed once by a command, for guests whose console is another device, and by cloud-init's final message at every boot.
    // `sync` first: host keys that are not on disk are empty files after a reset, and sshd does not start.
    runcmd: [["sh", "-c", `sync; echo ${quoteShell(mark)} >/dev/ttyS0`]],
    final_message: mark,
  };
}
