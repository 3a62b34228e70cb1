/** Differences of public and private networks. Firewall and tunnels are compared as the service stores them: it normalises them in a dry run. */
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import type { TunnelInput } from "@brume/api/vpn.ts";
import type { Path } from "../model/cloud/check.ts";
import type { Entry } from "../model/cloud/document.ts";
import {
  type Change,
  diffFields,
  diffLabels,
  findByName,
  isOwned,
  labelsOf,
  newFields,
  type Planning,
  requireFixed,
  requireOwner,
  stages,
  type Work,
} from "./change.ts";
import { diffFirewall, firewallOf, planFirewall } from "./firewall.ts";
import { planTunnels, tunnelsOf } from "./tunnels.ts";
import { deleteAndWait, waitForNetwork } from "./wait.ts";

/** Sends firewall and tunnels. The list of tunnels is made again, so that a tunnel which another client has added meanwhile stays. */
async function configure(work: Work, id: number, entry: Entry, label: string | null): Promise<void> {
  const { client, signal } = work;
  const firewall = firewallOf(entry);
  if (firewall !== undefined) {
    work.progress("firewall");
    await client.configureFirewall({ path: { id }, body: firewall as never }, { signal });
  }
  if (entry["Tunnels"] !== undefined) {
    work.progress("tunnels");
    const { answer, etag } = await client.raw.readPublicNetwork({ path: { id } }, { signal });
    const Tunnels = tunnelsOf(entry, answer.Vpn.Tunnels, label) ?? [];
    await client.configureVpn({ path: { id }, body: { Tunnels } }, { signal, ...(etag !== null && { ifMatch: etag }) });
  }
  work.progress("is being applied");
  await waitForNetwork(work, id);
}

/** Returns `28` for `/28` and for 16 addresses. */
function prefixOf(value: unknown): string {
  const text = String(value).replace("/", "");
  const count = Number(text);
  return [8, 16, 32, 64, 128, 256].includes(count) ? String(32 - Math.log2(count)) : text;
}

async function planPublic(planning: Planning, entry: Entry, path: Path): Promise<Change[]> {
  const { client, signal, label, found } = planning;
  const current = findByName(planning, found.publicNetworks, entry, "public network", path);
  const { Firewall: _, Tunnels, NetworkCapacity, ...own } = entry;
  const capacity = NetworkCapacity === undefined ? {} : { NetworkCapacity: prefixOf(NetworkCapacity) };
  const shared = { kind: "PublicNetworks", name: entry.Name, path } as const;
  if (current === undefined) {
    const body: Entry = { ...own, ...capacity, Name: entry.Name, Labels: labelsOf(entry, {}, label) };
    const fields = [
      ...newFields({ ...own, ...capacity }),
      ...(firewallOf(entry)
        ? diffFirewall(
            { Enabled: false, DefaultRuleAction: "Deny", Rules: [], ConfirmBy: null },
            firewallOf(entry) ?? {},
          )
        : []),
      ...((Tunnels ?? []) as TunnelInput[]).map((one) => ({
        field: `Tunnel ${one.Name}`,
        before: null,
        after: one.Type ?? "IPsec",
      })),
    ];
    return [
      {
        ...shared,
        op: "Create",
        id: null,
        fields,
        stage: stages.networks,
        check: () => client.createPublicNetwork({ body }, { dryRun: true, signal }),
        async run(work) {
          const { Id } = await client.createPublicNetwork({ body }, { signal });
          work.created.set(`PublicNetworks/${entry.Name}`, Id);
          await configure(work, Id, entry, label);
        },
      },
    ];
  }
  const id = current.Id;
  const what = `public network ${entry.Name}`;
  requireOwner(planning, current, `The ${what}`, path);
  requireFixed(
    planning,
    diffFields({ ...own, ...capacity }, current, ["IsDHCP", "DCLocation", "NetworkCapacity"]),
    what,
    path,
  );
  const edits = [...diffFields(entry, current, ["Bandwidth"]), ...diffLabels(entry, current.Labels, label)];
  const firewall = firewallOf(entry);
  const tunnels = tunnelsOf(entry, current.Vpn.Tunnels, label);
  const rules = [
    ...(firewall === undefined ? [] : await planFirewall(planning, current, firewall)),
    ...(tunnels === undefined ? [] : await planTunnels(planning, current, tunnels)),
  ];
  const body = Object.fromEntries(edits.map(({ field, after }) => [field, after]));
  const fields = [...edits, ...rules];
  if (fields.length === 0) {
    if (current.State === "Active" && current.Generation === current.AppliedGeneration) return [];
    return [
      {
        ...shared,
        op: "Wait",
        id,
        fields,
        stage: stages.networks,
        run: async (work) => void (await waitForNetwork(work, id)),
      },
    ];
  }
  return [
    {
      ...shared,
      op: "Update",
      id,
      fields,
      stage: stages.rules,
      ...(edits.length > 0 && {
        check: () => client.updatePublicNetwork({ path: { id }, body }, { dryRun: true, signal }),
      }),
      async run(work) {
        if (edits.length > 0) await client.updatePublicNetwork({ path: { id }, body }, { signal });
        if (rules.length > 0) await configure(work, id, entry, label);
        else await waitForNetwork(work, id);
      },
    },
  ];
}

function planPrivate(planning: Planning, entry: Entry, path: Path): Change[] {
  const { client, signal, label, found } = planning;
  const current = findByName(planning, found.networks, entry, "network", path);
  const shared = { kind: "Networks", name: entry.Name, path } as const;
  if (current === undefined) {
    const body: Entry = { ...entry, Labels: labelsOf(entry, {}, label) };
    return [
      {
        ...shared,
        op: "Create",
        id: null,
        fields: newFields(entry),
        stage: stages.networks,
        check: () => client.createNetwork({ body }, { dryRun: true, signal }),
        async run(work) {
          const { ID } = await client.createNetwork({ body }, { signal });
          work.created.set(`Networks/${entry.Name}`, ID);
        },
      },
    ];
  }
  requireOwner(planning, current, `The network ${entry.Name}`, path);
  requireFixed(
    planning,
    diffFields(entry, current, ["Gateway", "IsDHCP", "DCLocation", "CIDR"]),
    `network ${entry.Name}`,
    path,
  );
  const fields = diffLabels(entry, current.Labels, label);
  if (fields.length === 0) return [];
  const input = { path: { id: current.ID }, body: { Labels: labelsOf(entry, current.Labels, label) } };
  return [
    {
      ...shared,
      op: "Update",
      id: current.ID,
      fields,
      stage: stages.networks,
      check: () => client.updateNetwork(input, { dryRun: true, signal }),
      run: async () => void (await client.updateNetwork(input, { signal })),
    },
  ];
}

const asNetwork = (one: PublicNetwork | Network) =>
  "Id" in one ? ({ kind: "PublicNetworks", id: one.Id } as const) : ({ kind: "Networks", id: one.ID } as const);

/** Returns the deletions of networks that have the label of the file and are not in it. */
function planRemoved(
  { client, label, found }: Planning,
  names: Readonly<Record<"PublicNetworks" | "Networks", ReadonlySet<string>>>,
): Change[] {
  return [...found.publicNetworks, ...found.networks]
    .filter((one) => isOwned(one, label) && !names[asNetwork(one).kind].has(one.Name))
    .map((one): Change => {
      const { kind, id } = asNetwork(one);
      const input = { path: { id } };
      return {
        op: "Delete",
        kind,
        name: one.Name,
        id,
        fields: [{ field: "CIDR", before: one.CIDR, after: null }],
        path: null,
        stage: stages.removedNetworks,
        run: (work) =>
          kind === "Networks"
            ? deleteAndWait(
                work,
                () => client.deleteNetwork(input),
                () => client.readNetwork(input),
                "deleteNetwork",
              )
            : deleteAndWait(
                work,
                () => client.deletePublicNetwork(input),
                () => client.readPublicNetwork(input),
                "deletePublicNetwork",
              ),
      };
    });
}

/** Returns the differences of all networks. */
export async function planNetworks(
  planning: Planning,
  entries: { readonly publicOnes: readonly Entry[]; readonly privateOnes: readonly Entry[] },
): Promise<Change[]> {
  const { publicOnes, privateOnes } = entries;
  const changes: Change[] = [];
  for (const [index, entry] of publicOnes.entries())
    changes.push(...(await planPublic(planning, entry, ["PublicNetworks", index])));
  for (const [index, entry] of privateOnes.entries())
    changes.push(...planPrivate(planning, entry, ["Networks", index]));
  const names = {
    PublicNetworks: new Set(publicOnes.map(({ Name }) => Name)),
    Networks: new Set(privateOnes.map(({ Name }) => Name)),
  };
  return [...changes, ...planRemoved(planning, names)];
}
