/**
 * What a running charon has loaded and set up, asked of itself. Each tunnel's shared key is loaded under a name with a digest of the
 * whole tunnel, salted, so that the key is in nobody's name: so charon itself remembers what it was told.
 */
import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { IpsecTunnel } from "../interface.ts";
import { tunnelOf } from "./strongswan.ts";
import { type Message, sections, text, texts, type Vici } from "./vici.ts";

export interface Loaded {
  /** Names under which its keys are loaded. */
  readonly secrets: readonly string[];
  /** The peer's addresses of its connection; null: there is none. */
  readonly peers: readonly string[] | null;
}

/** By tunnel. Of others' connections nothing is told. */
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

/** The associations of each tunnel; one that is being replaced stands beside its successor. */
export async function readAssociations(vici: Vici): Promise<ReadonlyMap<number, readonly Message[]>> {
  const found = new Map<number, Message[]>();
  for (const event of await vici.stream("list-sas", "list-sa"))
    for (const [name, association] of sections(event)) {
      const id = tunnelOf(name);
      if (id !== null) found.set(id, [...(found.get(id) ?? []), association]);
    }
  return found;
}

/** Is somebody already on the way to bring this tunnel up? */
export const isBusy = (associations: readonly Message[]): boolean =>
  associations.some(
    (association) =>
      ["CREATED", "CONNECTING"].includes(text(association, "state")) ||
      [...texts(association, "tasks-active"), ...texts(association, "tasks-queued")].some((task) =>
        ["CHILD_CREATE", "QUICK_MODE"].includes(task),
      ),
  );

/** Milliseconds that a peer is given for the rest of its handshake. */
const handshakeLimit = 500;
const emptySpi = "0000000000000000";

/**
 * Waits, not for long, until no handshake with the peer of such a tunnel is half done: when one is cut whose last answer is under way,
 * the peer has a tunnel that nobody tells it to forget.
 */
export async function awaitHandshakes(vici: Vici, isMeant: (id: number) => boolean): Promise<void> {
  for (let waited = 0; waited < handshakeLimit; waited += 20) {
    const associations = [...(await readAssociations(vici))].flatMap(([id, list]) => (isMeant(id) ? list : []));
    const isIncomplete = associations.some(
      (each) => text(each, "state") === "CONNECTING" && text(each, "responder-spi") !== emptySpi,
    );
    if (!isIncomplete) return;
    await sleep(20);
  }
}

/** What the shared key is loaded under. The MTU is on the route and no reason to end a tunnel. */
export function secretName(tunnel: IpsecTunnel, edgeAddress: string, salt: string): string {
  const spec = JSON.stringify([edgeAddress, { ...tunnel, mtu: 0 }]);
  return `psk-${tunnel.id}-${salt}-${createHmac("sha256", salt).update(spec).digest("hex").slice(0, 32)}`;
}

/** Is this tunnel, just as it is wished, what was loaded? */
export const isLoaded = ({ secrets, peers }: Loaded, tunnel: IpsecTunnel, edgeAddress: string): boolean =>
  peers !== null &&
  secrets.length === 1 &&
  secrets.every((name) => name === secretName(tunnel, edgeAddress, name.split("-")[2] ?? ""));
