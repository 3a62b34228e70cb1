/** Differences of servers: size and flags, links to networks. A change that would need a new disk is a problem, not a change. */
import type { Server } from "@brume/api/server.ts";
import type { Path } from "../model/cloud/check.ts";
import type { Cloud, Entry } from "../model/cloud/document.ts";
import {
  type Change,
  diffFields,
  diffLabels,
  type FieldChange,
  findByName,
  isOwned,
  labelsOf,
  newFields,
  type Planning,
  requireOwner,
  stages,
  unknownName,
  type Work,
} from "./change.ts";
import { createFinder, describeLinks, diffLinks, type LinkPlan, linksOf, networkId, type WantedLink } from "./links.ts";
import { deleteAndWait, waitForAction, waitForCreation } from "./wait.ts";

const editable = ["CPU", "RAM", "HDD", "IsHighPerformance", "HDDType", "IsProtected", "isBackupActive", "BackupPeriod"];

/** Converts names of keys to ids. */
function keysOf({ found, problems }: Planning, entry: Entry, path: Path): number[] | undefined {
  const names = entry["SshKeys"] as readonly string[] | undefined;
  return names?.flatMap((name, index) => {
    const same = found.keys.filter(({ Title, ID }) => Title === name || String(ID) === name);
    if (same.length === 1) return same.map(({ ID }) => ID);
    const titles = found.keys.map(({ Title }) => Title);
    const message =
      same.length > 1
        ? `${same.length} SSH keys have the title "${name}". Give the id of one.`
        : unknownName("SSH key", name, titles);
    problems.push({ path: [...path, "SshKeys", index], message });
    return [];
  });
}

async function addLink(work: Work, id: number, link: WantedLink, location: string) {
  const { IP, Bandwidth } = link;
  const NetworkID = await networkId(work, link.target, location);
  const body = {
    Type: "AddNetwork" as const,
    NetworkID,
    ...(IP !== undefined && { IP }),
    ...(Bandwidth !== undefined && { Bandwidth }),
  };
  return work.client.startAction({ path: { id }, body }, { signal: work.signal });
}

/** Starts all changes of links, which the service runs one after the other, and waits for them. */
async function changeLinks(work: Work, id: number, plan: LinkPlan, location: string): Promise<void> {
  const { client, signal } = work;
  const start = (body: Parameters<typeof client.startAction>[0]["body"]) =>
    client.startAction({ path: { id }, body }, { signal });
  for (const { LinkID } of plan.remove)
    await waitForAction(work, await start({ Type: "RemoveNetwork", NetworkLinkID: LinkID }));
  for (const link of plan.add) await waitForAction(work, await addLink(work, id, link, location));
  for (const { link, wanted } of plan.bandwidth)
    await waitForAction(
      work,
      await start({ Type: "EditNetworkBandwidth", NetworkLinkID: link.LinkID, Bandwidth: wanted }),
    );
}

async function create(
  work: Work,
  base: object,
  links: readonly WantedLink[] | undefined,
  location: string,
): Promise<void> {
  const { client, signal } = work;
  const [first, ...others] = links ?? [];
  const network =
    first === undefined || first.target.kind === "Shared"
      ? {}
      : { NetworkID: await networkId(work, first.target, location) };
  const more = {
    ...(first?.IP !== undefined && { NetworkIP: first.IP }),
    ...(first?.Bandwidth !== undefined && { NetworkBandwidth: first.Bandwidth }),
  };
  const body = { ...base, ...network, ...more } as { Name: string };
  const { ID, DCLocation, LinkedNetworks } = await client.createServer({ body }, { signal });
  await waitForCreation(work, ID);
  const remove = links?.length === 0 ? LinkedNetworks : [];
  await changeLinks(work, ID, { add: others, remove, bandwidth: [] }, DCLocation);
}

function planNew(
  planning: Planning,
  entry: Entry,
  path: Path,
  links: WantedLink[] | undefined,
  failed: Server | null,
): Change {
  const { client, signal, label } = planning;
  const { Networks: _, Image, SshKeys, ...own } = entry;
  const keys = keysOf(planning, entry, path);
  const base = {
    ...own,
    ...(Image !== undefined && { ImageID: Image }),
    ...(keys !== undefined && { SshKeys: keys }),
    Labels: labelsOf(entry, {}, label),
  } as { Name: string };
  const first = links?.[0];
  const isReady = first === undefined || first.target.kind === "Shared" || first.target.id !== null;
  const network = first?.target.id === undefined || first.target.id === null ? {} : { NetworkID: first.target.id };
  const shown = newFields({ ...own, ...(Image !== undefined && { Image }), ...(SshKeys !== undefined && { SshKeys }) });
  const secret = (one: FieldChange) => (one.field === "UserData" ? { ...one, after: "(not shown)" } : one);
  const location = entry.DCLocation ?? "";
  return {
    op: failed === null ? "Create" : "Replace",
    kind: "Servers",
    name: entry.Name,
    id: failed?.ID ?? null,
    fields: [...shown.map(secret), ...describeLinks({ add: links ?? [], remove: [], bandwidth: [] })],
    path,
    stage: stages.servers,
    ...(isReady && { check: () => client.createServer({ body: { ...base, ...network } }, { dryRun: true, signal }) }),
    async run(work) {
      if (failed !== null) await remove(work, failed.ID);
      await create(work, base, links, location);
    },
  };
}

const remove = (work: Work, id: number) => {
  const [input, options] = [{ path: { id } }, { signal: work.signal }] as const;
  work.progress("is being deleted");
  return deleteAndWait(
    work,
    () => work.client.deleteServer(input, options),
    () => work.client.readServer(input, options),
    "deleteServer",
  );
};

/** Adds problems for what only a new disk could change, and notes for what is used only at creation. */
function requireSame(planning: Planning, entry: Entry, current: Server, path: Path): void {
  const what = `server ${current.Name}`;
  const image = entry.Image;
  const names = [current.Image.toLowerCase(), String(current.ImageID)];
  if (image !== undefined && !names.includes(image.toLowerCase()))
    planning.problems.push({
      path: [...path, "Image"],
      message: `Image of ${what} is "${current.Image}". Another one needs a new disk: brume server rebuild ${current.Name} --image ${image}`,
    });
  for (const { field, before, after } of diffFields(entry, current, ["HostName", "DCLocation"]))
    planning.problems.push({
      path: [...path, field],
      message: `${field} of ${what} cannot be changed: it is "${String(before)}", not "${String(after)}".`,
    });
  const keys = new Set(keysOf(planning, entry, path) ?? current.LinkedSshKeys.map(({ ID }) => ID));
  if (keys.size !== current.LinkedSshKeys.length || current.LinkedSshKeys.some(({ ID }) => !keys.has(ID)))
    planning.notes.push(`SshKeys of ${what} differ. They are used only when a server is created or rebuilt.`);
}

function planServer(planning: Planning, entry: Entry, path: Path, links: WantedLink[] | undefined): Change[] {
  const { client, signal, label, found } = planning;
  const current = findByName(planning, found.servers, entry, "server", path);
  if (current === undefined) return [planNew(planning, entry, path, links, null)];
  requireOwner(planning, current, `The server ${current.Name}`, path);
  if (current.State === "Failed") return [planNew(planning, entry, path, links, current)];
  requireSame(planning, entry, current, path);
  const wanted = entry["HDDType"] === "HDD" ? { ...entry, HDDType: "SAS" } : entry;
  const edits = [...diffFields(wanted, current, editable), ...diffLabels(entry, current.Labels, label)];
  const plan = links === undefined ? { add: [], remove: [], bandwidth: [] } : diffLinks(links, current.LinkedNetworks);
  const fields = [...edits, ...describeLinks(plan)];
  const input = { path: { id: current.ID }, body: Object.fromEntries(edits.map(({ field, after }) => [field, after])) };
  const shared = { kind: "Servers", name: current.Name, id: current.ID, fields, path, stage: stages.servers } as const;
  if (fields.length === 0)
    return current.State === "New" ? [{ ...shared, op: "Wait", run: (work) => waitForCreation(work, current.ID) }] : [];
  return [
    {
      ...shared,
      op: "Update",
      ...(edits.length > 0 && { check: () => client.updateServer(input, { dryRun: true, signal }) }),
      async run(work) {
        if (current.State === "New") await waitForCreation(work, current.ID);
        if (edits.length > 0) await waitForAction(work, await client.updateServer(input, { signal }));
        await changeLinks(work, current.ID, plan, current.DCLocation);
      },
    },
  ];
}

/** Returns the differences of all servers. */
export function planServers(planning: Planning, cloud: Cloud): Change[] {
  const entries = cloud.Servers ?? [];
  const find = createFinder(planning, cloud);
  const changes = entries.flatMap((entry, index) => {
    const path = ["Servers", index];
    return planServer(planning, entry, path, linksOf(entry, path, find));
  });
  const names = new Set(entries.map(({ Name }) => Name));
  const gone = planning.found.servers.filter((one) => isOwned(one, planning.label) && !names.has(one.Name));
  return [
    ...changes,
    ...gone.map(
      ({ ID, Name, CPU, RAM, HDD }): Change => ({
        op: "Delete",
        kind: "Servers",
        name: Name,
        id: ID,
        fields: [{ field: "Size", before: `${CPU} CPU, ${RAM} MB, ${HDD} GB disk`, after: null }],
        path: null,
        stage: stages.removedServers,
        check: () => planning.client.deleteServer({ path: { id: ID } }, { dryRun: true, signal: planning.signal }),
        run: (work) => remove(work, ID),
      }),
    ),
  ];
}
