/**
 * Manages the IPsec tunnels of all networks: one charon per network with tunnels, in its namespace, configured over VICI. Tunnels that are
 * loaded already are not touched. charon itself records them: each shared key is loaded under a name with a digest of its tunnel, so that a
 * restarted service, even after a crash during a change, can read what is in force. A tunnel that is down is initiated again until it is
 * up; a charon that ended is started again with all its tunnels.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../../base/log.ts";
import { createSerialQueue, type SerialQueue } from "../../../base/serialqueue.ts";
import type { Exec } from "../../exec.ts";
import type { IpsecTunnel, TunnelStatus } from "../interface.ts";
import { createConfine } from "../linux/confine.ts";
import { createInitiations, type Initiations } from "../linux/initiations.ts";
import { type Charon, createCharon, program, programData } from "./charon.ts";
import { createDiagnosis, type Finding } from "./diagnosis.ts";
import { loadTunnels } from "./load.ts";
import { borrowedAddresses, ensureBorrowed } from "./sourceaddress.ts";
import { readAssociations } from "./state.ts";
import {
  childrenMissing,
  childrenNarrowed,
  createTunnelHistory,
  noRefusals,
  noteRekey,
  reasonOf,
  stateWhileDown,
  statusOf,
  type TunnelHistory,
} from "./status.ts";
import { tunnelOf } from "./strongswan.ts";
import { ensureRoutes, removeRoutes } from "./tunnelroutes.ts";
import { sections, text, type Vici } from "./vici.ts";

/** The edge of a network. Its namespace, bridge and addresses exist before tunnels are applied. */
export interface Edge {
  readonly namespace: string;
  /** IPv4 address of the edge, the source of packets to peers. */
  readonly address: string;
  readonly cidr: string;
  /** The edge's address inside `cidr`. */
  readonly gateway: string;
}

/** Options of `createIpsec`. */
export interface IpsecOptions {
  readonly exec: Exec;
  /** Parent folder for the files of each namespace. Its path must be short: the path of a socket has at most 107 bytes. */
  readonly runFolder: string;
  /** Whether the kernel supports ESP; otherwise libipsec is used. */
  readonly kernelEsp: boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: (bytes: number) => Uint8Array;
  /** Resolves a host name to an IPv4 address. */
  readonly lookup: (host: string) => Promise<string>;
  /** Milliseconds between attempts for a tunnel that is down, 2000 by default. */
  readonly retryAfter?: number;
  /** Milliseconds that a removal waits at most for handshakes in progress, 3000 by default. */
  readonly handshakeLimit?: number;
  readonly log: Log;
}

/** The driver of all IPsec tunnels. */
export interface Ipsec {
  /**
   * Brings the network's tunnels to exactly these. Unchanged tunnels are not interrupted. Resolves when charon has the configuration, not
   * when peers have responded. Rejects when charon does not start or refuses a tunnel, and then retries.
   */
  apply(edge: Edge, tunnels: readonly IpsecTunnel[]): Promise<void>;
  /** Removes all of IPsec from the namespace: it notifies peers, ends the daemon and removes its files. An unknown namespace is ignored. */
  remove(namespace: string): Promise<void>;
  /** Returns tunnel statuses by namespace, of all applied networks or of one, within about two seconds. */
  observe(namespace?: string): Promise<ReadonlyMap<string, readonly TunnelStatus[]>>;
  /** Ends the driver; daemons and tunnels stay up. */
  close(): void;
}

/** The device of libipsec, created by charon. */
const ipsecDevice = "ipsec0";
/** The largest packet in bytes that fits into libipsec's packets. */
const ipsecMtu = 1400;
/** Routing table, consulted before charon's own table 220, whose routes have no MTU. */
const routingTable = 219;

const responseTimeout = 2000;
/** Milliseconds between attempts. With it a peer that is configured a moment later is connected within three seconds. */
export const soon = 2000;

interface Net {
  edge: Edge;
  tunnels: readonly IpsecTunnel[];
  /** Whether routes and addresses must be checked. */
  unchecked: boolean;
  /** Why charon of this network does not work, "" when it does. */
  failure: string;
  readonly charon: Charon;
  readonly initiations: Initiations;
  readonly histories: Map<number, TunnelHistory>;
  timer: NodeJS.Timeout | undefined;
  due: number;
  readonly queue: SerialQueue;
}

/** Creates the driver. */
export function createIpsec(options: IpsecOptions): Ipsec {
  const { exec, runFolder, kernelEsp, now, random, lookup, retryAfter = soon, handshakeLimit = 3000, log } = options;
  const confine = createConfine(exec, program, programData);
  const nets = new Map<string, Net>();
  const folderOf = (namespace: string): string => join(runFolder, namespace, "ipsec");
  const enabledOf = (net: Net): readonly IpsecTunnel[] => net.tunnels.filter(({ enabled }) => enabled);
  const historyOf = (net: Net, id: number): TunnelHistory => {
    const history = net.histories.get(id) ?? createTunnelHistory();
    net.histories.set(id, history);
    return history;
  };

  const enqueue = <T>(net: Net, work: () => Promise<T>): Promise<T> => net.queue.run(work);

  const schedule = (net: Net, after: number): void => {
    if (nets.get(net.edge.namespace) !== net || (net.timer !== undefined && net.due <= performance.now() + after))
      return;
    clearTimeout(net.timer);
    net.due = performance.now() + after;
    net.timer = setTimeout(() => {
      net.timer = undefined;
      enqueue(net, () => reconcile(net)).catch((error: unknown) =>
        log("warn", "Could not configure IPsec tunnels; will retry", {
          namespace: net.edge.namespace,
          error,
        }),
      );
    }, after).unref();
  };

  /** Stores a finding with its tunnel. A peer that was refused before its tunnel was known counts for all tunnels whose peer it may be. */
  const noteFinding = (net: Net, finding: Finding): void => {
    const { tunnel, remote, identity } = finding;
    for (const each of enabledOf(net)) {
      const isMeant = tunnel === null ? remote === each.peer || identity === each.peerIdentity : tunnel === each.id;
      if (isMeant) historyOf(net, each.id).reason = reasonOf(each, finding);
    }
  };

  const onConnect = async (net: Net, vici: Vici): Promise<void> => {
    const diagnosis = createDiagnosis();
    await vici.listen("log", (line) => {
      const finding = diagnosis.read(line);
      if (finding !== null) noteFinding(net, finding);
    });
    await vici.listen("child-updown", (event) => {
      for (const [name] of sections(event)) {
        const id = tunnelOf(name) ?? Number.NaN;
        const history = net.histories.get(id);
        if (history === undefined) continue;
        if (text(event, "up") === "yes") {
          Object.assign(history, { wasUp: true, establishedAt: history.establishedAt ?? now(), reason: null });
          net.initiations.end(id);
        } else {
          Object.assign(history, stateWhileDown);
          schedule(net, 1000);
        }
      }
    });
    await vici.listen("child-rekey", (event) => {
      for (const [name, association] of sections(event)) {
        const history = net.histories.get(tunnelOf(name) ?? Number.NaN);
        if (history !== undefined) noteRekey(association, history);
      }
    });
  };

  const createNet = (edge: Edge): Net => {
    const net: Net = {
      edge,
      tunnels: [],
      unchecked: true,
      failure: "",
      histories: new Map(),
      initiations: createInitiations(),
      timer: undefined,
      due: 0,
      queue: createSerialQueue(),
      charon: createCharon({
        exec,
        folder: folderOf(edge.namespace),
        namespace: edge.namespace,
        kernelEsp,
        confine,
        handshakeLimit,
        onConnect: (vici) => {
          net.unchecked = true;
          return onConnect(net, vici);
        },
        onLost: () => {
          // If charon still runs, it reports since when its tunnels are up.
          for (const history of net.histories.values()) Object.assign(history, stateWhileDown);
          log("warn", "charon ended; starting it again", { namespace: edge.namespace });
          schedule(net, 100);
        },
      }),
    };
    return net;
  };

  const checkRoutes = async (net: Net): Promise<void> => {
    const { namespace, cidr } = net.edge;
    const routes = enabledOf(net).flatMap(({ peerSubnets, mtu }) =>
      peerSubnets.map((subnet) => ({ subnet, mtu: Math.min(mtu, ipsecMtu) })),
    );
    await ensureRoutes(exec, { namespace, cidr, table: routingTable, device: kernelEsp ? null : ipsecDevice, routes });
  };

  const checkAddresses = async (net: Net): Promise<void> => {
    const blocks = enabledOf(net).flatMap(({ localSubnets }) => localSubnets);
    if (!kernelEsp) await ensureBorrowed(exec, net.edge.namespace, borrowedAddresses(net.edge.gateway, blocks));
  };

  const clear = async ({ charon, initiations, edge }: Net): Promise<void> => {
    initiations.replace([]);
    await charon.stop();
    await removeRoutes(exec, edge.namespace, routingTable);
    // The namespace may not exist any more.
    await ensureBorrowed(exec, edge.namespace, []).catch(() => {});
  };

  const reconcile = async (net: Net): Promise<void> => {
    if (nets.get(net.edge.namespace) !== net) return;
    const desired = enabledOf(net);
    try {
      if (desired.length === 0) {
        await clear(net);
        return;
      }
      if (net.unchecked) await checkAddresses(net);
      const vici = await net.charon.connect();
      const { address } = net.edge;
      const { histories, initiations } = net;
      await loadTunnels(vici, desired, address, {
        lookup,
        random,
        histories,
        initiations,
        retryAfter,
        handshakeLimit,
        steady: () => performance.now(),
      });
      if (net.unchecked) await checkRoutes(net);
      net.unchecked = false;
      net.failure = "";
      const associations = await readAssociations(vici);
      const isDown = (each: IpsecTunnel): boolean => {
        const up = associations.get(each.id) ?? [];
        return childrenMissing(each, up).length + childrenNarrowed(each, up).length > 0;
      };
      if (desired.some((each) => each.peer !== null && isDown(each))) schedule(net, retryAfter);
    } catch (error) {
      net.failure = (error as Error).message;
      schedule(net, retryAfter);
      throw error;
    }
  };

  const timeoutReason = (net: Net): Promise<string> =>
    new Promise((resolve) => {
      setTimeout(() => resolve(net.failure || "charon does not respond."), responseTimeout).unref();
    });

  const observeNet = async (net: Net): Promise<readonly TunnelStatus[]> => {
    const vici = net.charon.current();
    const reading = vici && readAssociations(vici).catch((error: unknown) => (error as Error).message);
    const known =
      reading === null ? net.failure || "charon is not running." : await Promise.race([reading, timeoutReason(net)]);
    return net.tunnels.map((tunnel) => {
      const associations = typeof known === "string" ? known : (known.get(tunnel.id) ?? []);
      const status = statusOf(tunnel, associations, historyOf(net, tunnel.id), now());
      // Rekeying may narrow a tunnel too, and no event reports it.
      if (status.reason?.fault === "selectors_refused" && tunnel.peer !== null) schedule(net, retryAfter);
      return status;
    });
  };

  return {
    async apply(edge, tunnels) {
      const { namespace } = edge;
      // Shortcut: most networks never had tunnels.
      if (tunnels.length === 0 && !nets.has(namespace) && !existsSync(folderOf(namespace))) return;
      const net = nets.get(namespace) ?? createNet(edge);
      nets.set(namespace, net);
      await enqueue(net, async () => {
        Object.assign(net, { edge, tunnels, unchecked: true });
        // A peer that refused before may be configured correctly now.
        for (const history of net.histories.values()) Object.assign(history, noRefusals);
        for (const id of net.histories.keys())
          if (!tunnels.some((tunnel) => tunnel.id === id)) net.histories.delete(id);
        await reconcile(net);
        if (tunnels.length > 0) return;
        clearTimeout(net.timer);
        nets.delete(namespace);
      });
    },
    async remove(namespace) {
      if (!nets.has(namespace) && !existsSync(folderOf(namespace))) return;
      const net = nets.get(namespace) ?? createNet({ namespace, address: "", cidr: "", gateway: "" });
      nets.delete(namespace);
      clearTimeout(net.timer);
      await enqueue(net, () => clear(net));
    },
    async observe(only) {
      const selected = [...nets].filter(([namespace]) => only === undefined || namespace === only);
      const all = await Promise.all(
        selected.map(async ([namespace, net]) => [namespace, await observeNet(net)] as const),
      );
      return new Map(all);
    },
    close() {
      const all = [...nets.values()];
      nets.clear();
      for (const net of all) {
        clearTimeout(net.timer);
        net.charon.release();
        // Also releases a connection that a running operation opens.
        void net.queue.settle().then(() => net.charon.release());
      }
    },
  };
}
