/**
 * Reads what a running charon has loaded and which associations it has. Each tunnel's shared key is loaded under a name with a salted
 * digest of the tunnel, so that the name does not reveal the key and charon itself records the configuration.
 */
import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { IpsecTunnel } from "../interface.ts";
import { tunnelOf } from "./strongswan.ts";
import { type Message, sections, text, texts, type Vici } from "./vici.ts";

/** What charon has loaded for one tunnel. */
export interface Loaded {
  /** Names of its loaded keys. */
  readonly secrets: readonly string[];
  /** The peer addresses of its connection; null: no connection is loaded. */
  readonly peers: readonly string[] | null;
}

/** Returns what is loaded, by tunnel; foreign connections are ignored. */
export async function readLoaded(vici: Vici): Promise<ReadonlyMap<number, Loaded>> {
  const loaded = new Map<number, Loaded>();
  for (const name of texts(await vici.call("get-shared"), "keys")) {
    const id = Number(/^psk-(\d+)-/.exec(name)?.[1] ?? Number.NaN);
    if (!Number.isNaN(id)) loaded.set(id, { secrets: [...(loaded.get(id)?.secrets ?? []), name], peers: null });
  }
  for (const event of await vici.stream("list-conns", "list-conn"))
    for (const [name, connection] of sections(event)) {
      const id = tunnelOf(name);
      if (id === null) continue;
      loaded.set(id, { secrets: loaded.get(id)?.secrets ?? [], peers: texts(connection, "remote_addrs") });
    }
  return loaded;
}

/** Returns the associations of each tunnel; one that is being replaced is listed with its successor. */
export async function readAssociations(vici: Vici): Promise<ReadonlyMap<number, readonly Message[]>> {
  const found = new Map<number, Message[]>();
  for (const event of await vici.stream("list-sas", "list-sa"))
    for (const [name, association] of sections(event)) {
      const id = tunnelOf(name);
      if (id !== null) found.set(id, [...(found.get(id) ?? []), association]);
    }
  return found;
}

/** Returns whether an attempt to bring the tunnel up is in progress. */
export const isBusy = (associations: readonly Message[]): boolean =>
  associations.some(
    (association) =>
      ["CREATED", "CONNECTING"].includes(text(association, "state")) ||
      [...texts(association, "tasks-active"), ...texts(association, "tasks-queued")].some((task) =>
        ["CHILD_CREATE", "QUICK_MODE"].includes(task),
      ),
  );

const emptySpi = "0000000000000000";

/** Milliseconds in which the first response of a peer counts as in flight. Later, the peer counts as unreachable. */
const firstResponse = 1000;

/**
 * Waits until no handshake of such a tunnel is in progress, at most `limit` milliseconds from `since` (of `performance.now()`). If a tunnel
 * is removed while its last message is in flight, the peer keeps a tunnel that no message ends. The last message follows the first response
 * at once, so a handshake without a response is awaited too, but not as long: most of these peers are unreachable.
 */
export async function awaitHandshakes(
  vici: Vici,
  isMeant: (id: number) => boolean,
  since: number,
  limit: number,
): Promise<void> {
  for (;;) {
    const associations = [...(await readAssociations(vici))].flatMap(([id, list]) => (isMeant(id) ? list : []));
    const passed = performance.now() - since;
    const isIncomplete = associations.some(
      (each) =>
        text(each, "state") === "CONNECTING" && (text(each, "responder-spi") !== emptySpi || passed < firstResponse),
    );
    if (!isIncomplete || passed >= limit) return;
    await sleep(20);
  }
}

/** Returns the name of a tunnel's key. The MTU is an attribute of the route, so a new one does not interrupt the tunnel. */
export function secretName(tunnel: IpsecTunnel, edgeAddress: string, salt: string): string {
  const spec = JSON.stringify([edgeAddress, { ...tunnel, mtu: 0 }]);
  return `psk-${tunnel.id}-${salt}-${createHmac("sha256", salt).update(spec).digest("hex").slice(0, 32)}`;
}

/** Returns whether exactly this tunnel is loaded. */
export const isLoaded = ({ secrets, peers }: Loaded, tunnel: IpsecTunnel, edgeAddress: string): boolean =>
  peers !== null &&
  secrets.length === 1 &&
  secrets.every((name) => name === secretName(tunnel, edgeAddress, name.split("-")[2] ?? ""));
