/** Tunnels of a cloud file: the complete list of a network, and the difference to the present one. */
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Tunnel, TunnelInput } from "@brume/api/vpn.ts";
import type { Entry } from "../model/cloud/document.ts";
import { type FieldChange, isOwned, isSame, labelsOf, type Planning } from "./change.ts";

/** Returns all tunnels of the network as they should be: those of the file, and those that do not belong to it. */
export function tunnelsOf(entry: Entry, current: readonly Tunnel[], label: string | null): TunnelInput[] | undefined {
  const wanted = entry["Tunnels"] as readonly (TunnelInput & Entry)[] | undefined;
  if (wanted === undefined) return undefined;
  const names = new Set(wanted.map(({ Name }) => Name));
  const kept = current.filter((one) => !names.has(one.Name) && !isOwned(one, label));
  return [
    ...wanted.map((one): TunnelInput => {
      const known = current.find(({ Name }) => Name === one.Name);
      return { ...(known && { Id: known.Id }), ...one, Labels: labelsOf(one, known?.Labels ?? {}, label) };
    }),
    ...kept.map(({ Id }): TunnelInput => ({ Id })),
  ];
}

const hidden = "(secret)";

/** Returns the difference between tunnels. `inputs`: which fields the file has. */
function diffTunnels(
  before: readonly Tunnel[],
  after: readonly object[],
  inputs: readonly TunnelInput[],
): FieldChange[] {
  const fields: FieldChange[] = [];
  const stays = new Set(inputs.map(({ Id }) => Id));
  for (const { Id, Name, Type } of before)
    if (!stays.has(Id)) fields.push({ field: `Tunnel ${Name}`, before: Type, after: null });
  for (const input of inputs) {
    if (input.Name === undefined) continue;
    const known = before.find(({ Id }) => Id === input.Id);
    const wanted = (after as { Name?: string }[]).find(({ Name }) => Name === input.Name) as
      | Record<string, unknown>
      | undefined;
    if (known === undefined) fields.push({ field: `Tunnel ${input.Name}`, before: null, after: input.Type ?? "IPsec" });
    else if (wanted !== undefined)
      for (const field of Object.keys(input).filter((name) => name !== "Id" && name !== "Name")) {
        const was = (known as Record<string, unknown>)[field];
        const will = field === "SharedKey" ? input.SharedKey : wanted[field];
        if (isSame(was, will)) continue;
        const shown = field === "SharedKey" ? [hidden, hidden] : [was, will];
        fields.push({ field: `Tunnel ${input.Name} ${field}`, before: shown[0], after: shown[1] });
      }
  }
  return fields;
}

/** Returns the difference to the tunnels of the file. */
export async function planTunnels(
  { client, signal }: Planning,
  current: PublicNetwork,
  Tunnels: TunnelInput[],
): Promise<FieldChange[]> {
  const { Tunnels: known } = current.Vpn;
  if (diffTunnels(known, Tunnels, Tunnels).length === 0) return [];
  const input = { path: { id: current.Id }, body: { Tunnels } };
  return diffTunnels(known, (await client.configureVpn(input, { dryRun: true, signal })).Vpn.Tunnels, Tunnels);
}
