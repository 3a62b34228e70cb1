/**
 * What a guest is told about itself, in the two languages that guests read: cloud-init's NoCloud (`user-data`, `meta-data`,
 * `network-config`, written as JSON, which is YAML) and `seed.env` for our small Linux, text for a shell. Names, keys and addresses
 * come from users: each must look like what it is, and is quoted all the same.
 */
import { isIP, isIPv4, isIPv6 } from "node:net";
import { quoteShell } from "../../../base/quote.ts";
import type { SeedFile } from "../interface.ts";
import { joinUserData, readUserData, scriptOf } from "./userdata.ts";

export interface GuestNic {
  /** Six pairs of lower-case hexadecimal digits with colons. */
  readonly mac: string;
  /** With prefix length: `10.64.0.9/29`, `fd24::9/64`. */
  readonly addresses: readonly string[];
  /** Default routes; the first card that has one is the way out, and when it goes the next. */
  readonly gateway4: string | null;
  readonly gateway6: string | null;
  readonly mtu: number | null;
  /** Ask the network for what is not said here. */
  readonly dhcp: boolean;
}

export interface Guest {
  /** A new one makes a new server of the guest: host keys, machine id, password, user data. */
  readonly instanceId: string;
  readonly hostName: string;
  readonly adminUser: string;
  /** As in /etc/shadow; null: nobody logs in by password. */
  readonly passwordHash: string | null;
  /** Lines as in `authorized_keys`. */
  readonly sshKeys: readonly string[];
  readonly nameServers: readonly string[];
  readonly nics: readonly GuestNic[];
  readonly userData: string | Uint8Array | null;
}

/** What a guest writes on its serial line, followed by the end of the line, when everything of a boot has been done. */
export const readyMark = (instanceId: string): string => `BRUME-READY instance=${instanceId}`;

/** The files of the seed volume. Throws when the guest is not what it must be, or its user data cannot be read. */
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
  const must = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`seed: ${what}`);
  };
  const isBlock = (text: string) => {
    const [address = "", length = "", ...rest] = text.split("/");
    return (
      isIP(address) !== 0 && /^\d{1,3}$/.test(length) && Number(length) <= (isIPv4(address) ? 32 : 128) && !rest[0]
    );
  };
  must(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(guest.instanceId), "an instance id has letters, digits, . _ -");
  must(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(guest.hostName), "a host name has letters, digits and hyphens");
  must(/^[A-Za-z_][A-Za-z0-9_-]{0,31}$/.test(guest.adminUser), "a user name has letters, digits, _ and -");
  must(guest.passwordHash === null || /^\$[0-9a-z]+\$[./0-9A-Za-z$=,]+$/.test(guest.passwordHash), "no password hash");
  for (const key of guest.sshKeys) must(/^[^\p{Cc}]+$/u.test(key), "a key is one line");
  for (const address of guest.nameServers) must(isIP(address) !== 0, "a name server is an address");
  for (const nic of guest.nics) {
    must(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(nic.mac), "no hardware address");
    must(nic.addresses.every(isBlock), "an address of a card has a prefix length");
    must(nic.gateway4 === null || isIPv4(nic.gateway4), "a gateway of IPv4 is an address of it");
    must(nic.gateway6 === null || isIPv6(nic.gateway6), "a gateway of IPv6 is an address of it");
    must(nic.mtu === null || (Number.isInteger(nic.mtu) && nic.mtu >= 68 && nic.mtu <= 65_535), "no such MTU");
  }
}

/** One line per card: `mac|v4 …|gateway4|v6 …|gateway6|mtu|dhcp`, each field may be empty. */
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
 * Of the default route by the first card, and one more for each further one, as in `guest/tiny/root/etc/card`: of two with one metric
 * the kernel takes but the first. Cards that ask the network for a route come after these, with 1024.
 */
const firstMetric = 101;

/** Netplan's format, version 2. */
function networkConfig(guest: Guest): unknown {
  const nic = ({ mac, addresses, gateway4, gateway6, mtu, dhcp }: GuestNic, index: number) => ({
    match: { macaddress: mac },
    dhcp4: dhcp,
    // The boot waits for the first card only.
    ...(index > 0 && { optional: true }),
    ...(mtu !== null && { mtu }),
    ...(addresses.length > 0 && {
      addresses,
      // Otherwise systemd waits for router advertisements that never come: 15 seconds of every boot.
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
 * Runs early in every boot. cloud-init makes new host keys for a new instance and leaves the machine id as it was: here a disk that has
 * been another instance gets a new one. A disk that has been none gets its first from systemd.
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
 * `isJoined`: a customer's config comes before this one. It then wins where both say something, and lists (users, files, commands) are
 * the customer's with ours at the end, so that the mark comes last.
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
    // sshd takes the first word that it finds, and by default root has no password there.
    ...(isRoot && {
      write_files: [
        { path: "/etc/ssh/sshd_config.d/01-brume.conf", permissions: "0644", content: "PermitRootLogin yes\n" },
      ],
    }),
    // Cards that came since the first boot are set up at the next one.
    updates: { network: { when: ["boot"] } },
    bootcmd: [["sh", "-c", renewMachineId(guest.instanceId)]],
    // Once by a command, for guests whose console is another line; then by cloud-init's last word, at every boot. Host keys that are
    // not on the disk by then are empty files after a reset, and sshd does not start.
    runcmd: [["sh", "-c", `sync; echo ${quoteShell(mark)} >/dev/ttyS0`]],
    final_message: mark,
  };
}
