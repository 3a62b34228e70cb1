/**
 * The IPsec tunnels of all networks: per network that has any, one charon in its namespace, told the whole wish over VICI. What is
 * loaded already stays untouched, which charon itself remembers: each shared key is loaded under a name that carries a digest of
 * its tunnel, so that a service that was restarted, even in the middle of a change, sees what is in force by asking. A tunnel that
 * is down is called again until it is up; a charon that died is started again with all its tunnels.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../../base/log.ts";
import { createSerialQueue, type SerialQueue } from "../../../base/serialqueue.ts";
import type { Exec } from "../../exec.ts";
import type { IpsecTunnel, TunnelStatus } from "../interface.ts";
import { type Calls, createCalls } from "../linux/calls.ts";
import { type Charon, createCharon } from "./charon.ts";
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

/** What tunnels need to know of their network's edge. Namespace, bridge and addresses are there before tunnels are applied. */
export interface Edge {
  readonly namespace: string;
  /** The edge's own address, from where it speaks to peers. */
  readonly address: string;
  readonly cidr: string;
  /** The edge's address inside `cidr`. */
  readonly gateway: string;
}

export interface IpsecOptions {
  readonly exec: Exec;
  /** Each namespace gets a folder in it. Short: the path of a socket has at most 107 bytes. */
  readonly runFolder: string;
  /** Found at start: the kernel has ESP; else libipsec does the work. */
  readonly kernelEsp: boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: (bytes: number) => Uint8Array;
  /** The IPv4 address of a host name. */
  readonly lookup: (host: string) => Promise<string>;
  /** Milliseconds between attempts for a tunnel whose peer refuses it. */
  readonly retryAfter?: number;
  readonly log: Log;
}

export interface Ipsec {
  /**
   * Makes the network's tunnels these, all of them. A tunnel whose fields did not change is not touched. Resolves when charon has
   * the configuration, not when peers have answered; rejects when charon does not start or refuses a tunnel, and goes on trying.
   */
  apply(edge: Edge, tunnels: readonly IpsecTunnel[]): Promise<void>;
  /** Nothing of IPsec is left of the namespace: peers are told, the daemon ends, its files go. An unknown one is fine. */
  remove(namespace: string): Promise<void>;
  /** Of all networks that were applied, or of one, by namespace, within about two seconds. */
  observe(namespace?: string): Promise<ReadonlyMap<string, readonly TunnelStatus[]>>;
  /** Forgets all; daemons and tunnels go on. */
  close(): void;
}

/** The device of libipsec, which is charon's own. */
export const ipsecDevice = "ipsec0";
/** The most that fits into libipsec's packets. */
export const ipsecMtu = 1400;
/** In front of charon's own table 220, whose routes carry no MTU. */
const routingTable = 219;

const silenceAfter = 2000;
/** A peer that is set up a moment later has its tunnel within three seconds. */
export const soon = 2000;

interface Net {
  edge: Edge;
  tunnels: readonly IpsecTunnel[];
  /** Routes and addresses are to be looked at again. */
  unchecked: boolean;
  /** Why the engine of this network does not work, "" when it does. */
  fault: string;
  readonly charon: Charon;
  readonly calls: Calls;
  readonly histories: Map<number, TunnelHistory>;
  timer: NodeJS.Timeout | undefined;
  due: number;
  readonly queue: SerialQueue;
}

export function createIpsec(options: IpsecOptions): Ipsec {
  const { exec, runFolder, kernelEsp, now, random, lookup, retryAfter = soon, log } = options;
  const nets = new Map<string, Net>();
  const folderOf = (namespace: string): string => join(runFolder, namespace, "ipsec");
  const enabledOf = (net: Net): readonly IpsecTunnel[] => net.tunnels.filter(({ enabled }) => enabled);
  const historyOf = (net: Net, id: number): TunnelHistory => {
    const history = net.histories.get(id) ?? createTunnelHistory();
    net.histories.set(id, history);
    return history;
  };

  const inTurn = <T>(net: Net, work: () => Promise<T>): Promise<T> => net.queue.run(work);

  const schedule = (net: Net, after: number): void => {
    if (nets.get(net.edge.namespace) !== net || (net.timer !== undefined && net.due <= performance.now() + after))
      return;
    clearTimeout(net.timer);
    net.due = performance.now() + after;
    net.timer = setTimeout(() => {
      net.timer = undefined;
      inTurn(net, () => reconcile(net)).catch((error: unknown) =>
        log("warn", "IPsec tunnels could not be set up; they are tried again", {
          namespace: net.edge.namespace,
          error,
        }),
      );
    }, after).unref();
  };

  /** A caller who was refused before his tunnel was found belongs to those whose peer he may be. */
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
          net.calls.over(id);
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
      fault: "",
      histories: new Map(),
      calls: createCalls(),
      timer: undefined,
      due: 0,
      queue: createSerialQueue(),
      charon: createCharon({
        exec,
        folder: folderOf(edge.namespace),
        namespace: edge.namespace,
        kernelEsp,
        onConnect: (vici) => {
          net.unchecked = true;
          return onConnect(net, vici);
        },
        onLost: () => {
          // Should it live on, it can still be asked since when its tunnels are up.
          for (const history of net.histories.values()) Object.assign(history, stateWhileDown);
          log("warn", "charon ended and is started again", { namespace: edge.namespace });
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

  const clear = async ({ charon, calls, edge }: Net): Promise<void> => {
    calls.replace([]);
    await charon.stop();
    await removeRoutes(exec, edge.namespace, routingTable);
    // The namespace itself may be gone.
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
      const { histories, calls } = net;
      const steady = () => performance.now();
      await loadTunnels(vici, desired, address, { lookup, random, histories, calls, retryAfter, steady });
      if (net.unchecked) await checkRoutes(net);
      net.unchecked = false;
      net.fault = "";
      const associations = await readAssociations(vici);
      const isDown = (each: IpsecTunnel): boolean => {
        const up = associations.get(each.id) ?? [];
        return childrenMissing(each, up).length + childrenNarrowed(each, up).length > 0;
      };
      if (desired.some((each) => each.peer !== null && isDown(each))) schedule(net, retryAfter);
    } catch (error) {
      net.fault = (error as Error).message;
      schedule(net, retryAfter);
      throw error;
    }
  };

  const silence = (net: Net): Promise<string> =>
    new Promise((resolve) => {
      setTimeout(() => resolve(net.fault || "charon does not answer."), silenceAfter).unref();
    });

  const observeNet = async (net: Net): Promise<readonly TunnelStatus[]> => {
    const vici = net.charon.current();
    const asked = vici && readAssociations(vici).catch((error: unknown) => (error as Error).message);
    const known = asked === null ? net.fault || "charon does not run." : await Promise.race([asked, silence(net)]);
    return net.tunnels.map((tunnel) => {
      const associations = typeof known === "string" ? known : (known.get(tunnel.id) ?? []);
      const status = statusOf(tunnel, associations, historyOf(net, tunnel.id), now());
      // Rekeying too may narrow a tunnel, and nobody tells.
      if (status.reason?.fault === "selectors_refused" && tunnel.peer !== null) schedule(net, retryAfter);
      return status;
    });
  };

  return {
    async apply(edge, tunnels) {
      const { namespace } = edge;
      // Most networks have no tunnels and never had.
      if (tunnels.length === 0 && !nets.has(namespace) && !existsSync(folderOf(namespace))) return;
      const net = nets.get(namespace) ?? createNet(edge);
      nets.set(namespace, net);
      await inTurn(net, async () => {
        Object.assign(net, { edge, tunnels, unchecked: true });
        // A peer that refused may have been mended meanwhile.
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
      await inTurn(net, () => clear(net));
    },
    async observe(only) {
      const asked = [...nets].filter(([namespace]) => only === undefined || namespace === only);
      const all = await Promise.all(asked.map(async ([namespace, net]) => [namespace, await observeNet(net)] as const));
      return new Map(all);
    },
    close() {
      const all = [...nets.values()];
      nets.clear();
      for (const net of all) {
        clearTimeout(net.timer);
        net.charon.release();
        // Also the connection of work that is still under way.
        void net.queue.settle().then(() => net.charon.release());
      }
    },
  };
}
