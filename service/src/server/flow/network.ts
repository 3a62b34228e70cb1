/** Changes the links of a server. Each change raises the generation of its network, requests a reconcile and publishes an event. */
import { emitNetworkEvent, raiseForLinks } from "../../network/change.ts";
import { type LinkSpec, reserveLink } from "../../network/link.ts";
import { deleteLink, type LinkRow, listLinksOfServer, updateLink } from "../../network/linktable.ts";
import { findNetwork, lockNetwork, type NetworkRow } from "../../network/table.ts";
import type { Tx } from "../../store/db.ts";
import type { FlowContext, RaisedNetwork } from "./context.ts";

type LinkContext = Pick<FlowContext, "clock" | "networks">;

/** Networks are locked by id, so that two transactions cannot block each other. */
const inOrder = (ids: readonly number[]): number[] => [...new Set(ids)].sort((one, other) => one - other);

/** The caller holds `lockNetwork`. Resolves to an empty list if the network has been deleted. */
async function raise(
  { clock, networks }: LinkContext,
  tx: Tx,
  id: number,
  links: readonly number[],
): Promise<RaisedNetwork[]> {
  const network = await findNetwork(tx, id);
  if (network === undefined) return [];
  const { generation } = await raiseForLinks(tx, networks.apply, network, clock.now(), links);
  return [{ network: id, generation }];
}

/** Publishes `changed` for networks after a change of their links that does not affect packets. */
export async function publishNetworks({ clock }: LinkContext, tx: Tx, ids: readonly number[]): Promise<void> {
  for (const id of inOrder(ids)) {
    await lockNetwork(tx, id);
    const network = await findNetwork(tx, id);
    if (network !== undefined) await emitNetworkEvent(tx, network, "changed", clock.now());
  }
}

/** Reserves an address and inserts the link. Resolves to it and its network with the new generation. Throws as `reserveLink` does. */
export async function joinNetwork(
  context: LinkContext,
  tx: Tx,
  id: number,
  spec: LinkSpec,
): Promise<[LinkRow, NetworkRow]> {
  await lockNetwork(tx, id);
  const [link, network] = await reserveLink(tx, id, spec);
  return [link, await raiseForLinks(tx, context.networks.apply, network, context.clock.now(), [link.id])];
}

/** Deletes the links of the server, all or one. Resolves to their networks. */
export async function leaveNetworks(
  context: LinkContext,
  tx: Tx,
  server: number,
  only?: number,
): Promise<RaisedNetwork[]> {
  const isSelected = ({ id }: LinkRow): boolean => only === undefined || id === only;
  const ids = inOrder((await listLinksOfServer(tx, server)).filter(isSelected).map(({ network_id }) => network_id));
  for (const id of ids) await lockNetwork(tx, id);
  const left = (await listLinksOfServer(tx, server)).filter(isSelected);
  for (const link of left) await deleteLink(tx, link.id);
  const raised: RaisedNetwork[] = [];
  for (const id of ids) {
    const links = left.filter(({ network_id }) => network_id === id).map((link) => link.id);
    raised.push(...(await raise(context, tx, id, links)));
  }
  return raised;
}

/** Sets the bandwidth of a link in Mbit/s. Resolves to an empty list if it has that bandwidth already. */
export async function shapeLink(
  context: LinkContext,
  tx: Tx,
  server: number,
  id: number,
  bandwidth: number,
): Promise<RaisedNetwork[]> {
  const link = (await listLinksOfServer(tx, server)).find((each) => each.id === id);
  if (link === undefined) return [];
  await lockNetwork(tx, link.network_id);
  if (link.bandwidth === bandwidth) return [];
  await updateLink(tx, id, { bandwidth });
  return raise(context, tx, link.network_id, [id]);
}
