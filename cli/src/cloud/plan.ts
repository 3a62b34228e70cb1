/** Compares a cloud file with the installation and validates the difference in the service, without changing anything. */
import { ApiError, type Client } from "@brume/api/client.ts";
import type { Problem } from "../model/cloud/check.ts";
import { type CloudFile, kinds } from "../model/cloud/document.ts";
import type { Change, Planning } from "./change.ts";
import { planDomains } from "./domains.ts";
import { planNetworks } from "./networks.ts";
import { planServers } from "./servers.ts";
import { nouns, readFound } from "./state.ts";

/** The difference, in the order of the work. */
export interface Plan {
  readonly changes: readonly Change[];
  readonly notes: readonly string[];
}

/** Returns the problems that the service finds in a change. Throws errors that are no rejection. */
async function checkChange(change: Change): Promise<Problem[]> {
  try {
    await change.check?.();
    return [];
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500 || [401, 429].includes(error.status)) throw error;
    const what = `${nouns[change.kind]} ${change.name}`;
    const details = error.errors.length > 0 ? error.errors : [{ pointer: "", detail: error.detail }];
    return details.map(({ pointer, detail }) => {
      const fields = pointer
        .split("/")
        .slice(1, 2)
        .map((name) => (name === "ImageID" ? "Image" : name));
      const message = `The service rejects the ${what}: ${detail} (${error.code})`;
      return { path: change.path === null ? [] : [...change.path, ...fields], message };
    });
  }
}

/** Returns the difference. Throws `UsageError` with all problems of the file, also those that the service finds. */
export async function makePlan(client: Client, signal: AbortSignal, { cloud, error }: CloudFile): Promise<Plan> {
  const label = cloud.Label ?? null;
  const wanted = new Set(kinds.filter((kind) => label !== null || cloud[kind] !== undefined));
  const found = await readFound(client, signal, wanted);
  const planning: Planning = { client, signal, found, label, problems: [], notes: [] };
  const networks = { publicOnes: cloud.PublicNetworks ?? [], privateOnes: cloud.Networks ?? [] };
  const changes = [
    ...(await planNetworks(planning, networks)),
    ...planServers(planning, cloud),
    ...(await planDomains(planning, cloud.Domains ?? [])),
  ].toSorted((a, b) => a.stage - b.stage);
  if (planning.problems.length === 0)
    for (const change of changes) planning.problems.push(...(await checkChange(change)));
  if (planning.problems.length > 0) throw error(planning.problems);
  if (label === null && changes.length > 0)
    planning.notes.push("The file has no Label, so nothing is deleted that it does not contain.");
  return { changes, notes: planning.notes };
}
