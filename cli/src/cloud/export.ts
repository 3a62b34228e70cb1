/** Writes the objects of an installation as a cloud file. Values that the service chooses by default are left out where the file stays exact without them. */
import type { Client } from "@brume/api/client.ts";
import type { Labels } from "@brume/api/common.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Server } from "@brume/api/server.ts";
import type { Tunnel } from "@brume/api/vpn.ts";
import { fileLabel, kinds } from "../model/cloud/document.ts";
import { entryOf } from "../model/cloud/records.ts";
import { recordForms, sharedBandwidth } from "../model/cloud/shape.ts";
import { UsageError } from "../model/values.ts";
import { plainRule, ruleDefaults } from "./firewall.ts";
import { sharedName } from "./links.ts";
import { type Found, networksOf, nouns, readFound } from "./state.ts";

type Fields = Record<string, unknown>;

/** Returns the labels without that of a file, or nothing. */
function labels(all: Labels): Fields {
  const { [fileLabel]: _, ...own } = all;
  return Object.keys(own).length === 0 ? {} : { Labels: own };
}

/** Returns the fields that differ from these defaults. */
const unlike = (value: object, defaults: Fields): Fields =>
  Object.fromEntries(
    Object.keys(defaults).flatMap((name) => {
      const one = (value as Fields)[name];
      return one === defaults[name] || one === undefined || one === null ? [] : [[name, one]];
    }),
  );

function firewall({ Firewall: { Enabled, DefaultRuleAction, Rules } }: PublicNetwork): Fields {
  if (!Enabled && Rules.length === 0 && DefaultRuleAction === "Deny") return { Firewall: { Enabled } };
  const rules = Rules.map(plainRule).map((one) => ({ Action: one["Action"], ...unlike(one, ruleDefaults) }));
  return { Firewall: { Enabled, DefaultRuleAction, Rules: rules } };
}

/** Fields of each type of tunnel, without keys: a key that is absent stays. */
const tunnelFields = {
  IPsec: [
    "PeerEndpoint",
    "PeerIdentificator",
    "LocalNetwork",
    "LocalIdentificator",
    "EncryptionType",
    "IkeVersion",
    "DhGroup",
    "Digest",
    "PerfectForwardSecrecy",
  ],
  WireGuard: ["PeerEndpoint", "LocalNetwork", "PeerPublicKey", "KeepAlive"],
} as const;

function tunnel(one: Tunnel): Fields {
  const own = tunnelFields[one.Type]
    .map((name) => [name, one[name]] as const)
    .filter(([, value]) => value !== "" && value !== null);
  const { Name, Type, PeerNetwork } = one;
  return {
    Name,
    Type,
    PeerNetwork,
    ...Object.fromEntries(own),
    ...unlike(one, { Enabled: true, Mtu: 1400 }),
    ...labels(one.Labels),
  };
}

function publicNetwork(one: PublicNetwork, isOnlyLocation: boolean): Fields {
  const { Name, NetworkCapacity, Bandwidth, DCLocation, Vpn } = one;
  return {
    Name,
    ...(!isOnlyLocation && { DCLocation }),
    NetworkCapacity,
    Bandwidth,
    ...unlike(one, { IsDHCP: true }),
    ...labels(one.Labels),
    ...firewall(one),
    Tunnels: Vpn.Tunnels.map(tunnel),
  };
}

type Link = Server["LinkedNetworks"][number];

/** Returns a link. Addresses of private networks are kept; those of public ones come from the pool of the installation. */
function link(found: Found, one: Link): string | Fields {
  const isShared = one.NetworkType === "PublicShared";
  const same = networksOf(found).filter(({ name }) => name === one.NetworkName);
  const isUnique = same.length === 1 && one.NetworkName !== sharedName;
  const Network = isShared ? sharedName : isUnique ? one.NetworkName : String(one.NetworkID);
  const edge = found.publicNetworks.find(({ Id }) => Id === one.NetworkID);
  const inside = found.networks.find(({ ID }) => ID === one.NetworkID);
  const usual = isShared ? sharedBandwidth : (edge ?? inside)?.Bandwidth;
  const more = {
    ...(one.NetworkType === "PrivateClient" && { IP: one.IP }),
    ...(one.Bandwidth !== usual && { Bandwidth: one.Bandwidth }),
  };
  return Object.keys(more).length === 0 ? Network : { Network, ...more };
}

function server(found: Found, one: Server, isOnlyLocation: boolean): Fields {
  const { Name, HostName, DCLocation, Image, CPU, RAM, HDD, LinkedSshKeys, LinkedNetworks } = one;
  const keys = LinkedSshKeys.map(({ ID, Title }) =>
    found.keys.filter((key) => key.Title === Title).length === 1 ? Title : String(ID),
  );
  return {
    Name,
    HostName,
    ...(!isOnlyLocation && { DCLocation }),
    Image,
    CPU,
    RAM,
    HDD,
    ...unlike(one, { IsHighPerformance: false, HDDType: "SSD", IsProtected: false, isBackupActive: false }),
    ...(one.isBackupActive && { BackupPeriod: one.BackupPeriod }),
    ...labels(one.Labels),
    ...(keys.length > 0 && { SshKeys: keys }),
    Networks: LinkedNetworks.map((each) => link(found, each)),
  };
}

/** Throws `UsageError` if two objects of a kind have one name: a file refers to objects by name. */
function requireUnique(names: readonly string[], noun: string): void {
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined)
    throw new UsageError(
      `Several ${noun}s have the name "${twice}", and a file refers to objects by name.`,
      "Rename all but one.",
    );
}

/** Returns the cloud file of the installation. `label`: only objects of the file with this label; null: all objects of the project. */
export async function exportCloud(client: Client, signal: AbortSignal, label: string | null): Promise<Fields> {
  const found = await readFound(client, signal, new Set(kinds));
  const locations = await client.listLocations({}, { signal });
  const isOnly = locations.length === 1;
  const isWanted = (one: { readonly Labels: Labels }) => label === null || one.Labels[fileLabel] === label;
  const servers = found.servers.filter((one) => isWanted(one) && one.State !== "Failed");
  const publicNetworks = found.publicNetworks.filter(isWanted);
  const networks = found.networks.filter(isWanted);
  requireUnique(
    publicNetworks.map(({ Name }) => Name),
    nouns.PublicNetworks,
  );
  requireUnique(
    networks.map(({ Name }) => Name),
    nouns.Networks,
  );
  requireUnique(
    servers.map(({ Name }) => Name),
    nouns.Servers,
  );
  const domains: Fields[] = [];
  for (const domain of found.domains.filter(isWanted)) {
    const { Name, LinkedRecords, Labels } = await client.readDomain({ path: { id: domain.ID } }, { signal });
    const records = LinkedRecords.filter(
      (one) => recordForms[one.TypeRecord] !== undefined && (label === null || isWanted(one)),
    );
    domains.push({
      Name,
      ...labels(Labels),
      Records: records.map((one) => ({ ...entryOf(one, Name), ...labels(one.Labels) })),
    });
  }
  const lists: [string, Fields[]][] = [
    ["PublicNetworks", publicNetworks.map((one) => publicNetwork(one, isOnly))],
    [
      "Networks",
      networks.map((one) => ({
        Name: one.Name,
        ...(!isOnly && { DCLocation: one.DCLocation }),
        CIDR: one.CIDR,
        ...unlike(one, { IsDHCP: true, Gateway: "" }),
        ...labels(one.Labels),
      })),
    ],
    ["Servers", servers.map((one) => server(found, one, isOnly))],
    ["Domains", domains],
  ];
  return {
    ...(label !== null && { Label: label }),
    ...Object.fromEntries(lists.filter(([, list]) => list.length > 0)),
  };
}
