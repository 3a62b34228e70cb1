/**
 * The ports that changed since the reconciler of networks last applied a network. With them it passes only these ports to a driver that can
 * change single ports, so that one server more costs the same in a network of any size. Kept in memory only, by network: after a
 * start, and whenever a change is not known, the network is applied completely.
 */
import type { Reconciler } from "../engine/flow.ts";

/** The reconciler that applies one network, and the changes that it has not applied yet. */
export type NetworkReconciler = Reconciler & { readonly changes: PortChanges };

/** Remembers which ports a generation changed, so that the driver applies only these. */
export interface PortChanges {
  /**
   * Notes what changes with a generation: the ports of these links, or (null) anything. Called in the transaction that raises the
   * generation. If it is rolled back, the note remains and only causes more work.
   */
  note(network: number, generation: number, links: readonly number[] | null): void;
  /** Notes that these ports need the driver although no generation changes: their devices were created. */
  touch(network: number, links: readonly number[]): void;
  /** Notes that the driver has applied the generation. `at`: steady time in ms; the next complete apply is due at `next`. */
  applied(network: number, generation: number, next: number): void;
  /** True if the driver has applied some generation since the start, or since `forget`. */
  isApplied(network: number): boolean;
  /** Notes that the network must be applied completely. */
  forget(network: number): void;
  /**
   * Returns the generation that the driver has, and the links that may differ from it; null: the network must be applied completely. The
   * links are not returned again unless they change again, so the caller calls `applied` or `forget` afterwards.
   */
  take(network: number, generation: number, now: number): ChangedPorts | null;
}

/** What the driver has, and what may differ from it. */
export interface ChangedPorts {
  readonly from: number;
  readonly links: number[];
  /** Steady time in ms at which the next complete apply is due. */
  readonly next: number;
}

interface Known {
  /** The generation that the driver has; null: unknown. */
  applied: number | null;
  next: number;
  readonly touched: Set<number>;
  /** By generation; null: anything. */
  readonly changed: Map<number, Set<number> | null>;
}

/** Creates the memory of changes. */
export function createPortChanges(): PortChanges {
  const networks = new Map<number, Known>();
  const of = (network: number): Known => {
    const known = networks.get(network) ?? { applied: null, next: 0, touched: new Set(), changed: new Map() };
    networks.set(network, known);
    return known;
  };
  return {
    note(network, generation, links) {
      const { changed } = of(network);
      const before = changed.get(generation);
      // A transaction that was rolled back may have noted another change with the same generation.
      changed.set(generation, links === null || before === null ? null : new Set([...(before ?? []), ...links]));
    },
    touch(network, links) {
      const { touched } = of(network);
      for (const link of links) touched.add(link);
    },
    applied(network, generation, next) {
      const known = of(network);
      known.applied = generation;
      known.next = next;
      for (const past of known.changed.keys()) if (past <= generation) known.changed.delete(past);
    },
    isApplied: (network) => (networks.get(network)?.applied ?? null) !== null,
    forget: (network) => void networks.delete(network),
    take(network, generation, now) {
      const known = of(network);
      const links = new Set(known.touched);
      known.touched.clear();
      const { applied, next, changed } = known;
      if (applied === null || applied > generation || now >= next) return null;
      for (let each = generation; each > applied; each--) {
        const linksOfChange = changed.get(each);
        if (linksOfChange === undefined || linksOfChange === null) return null;
        for (const link of linksOfChange) links.add(link);
      }
      return links.size === 0 ? null : { from: applied, links: [...links], next };
    },
  };
}
