/**
 * What an edit of sizes comes to: which steps it needs, whether the server has to be restarted for it, and how much must be held
 * for it in quotas and in the location from now on. Like all orders it is held against what was accepted before it (api 4.1).
 */
import { actionSteps } from "@brume/api/action.ts";
import { ApiError, errorAt, fieldError, invalidFields } from "../../base/error.ts";
import { flowName } from "./state.ts";

/** Cores, MB, GB; twice the share of the processor or not. */
export interface Sizes {
  readonly cpu: number;
  readonly ram: number;
  readonly hdd: number;
  readonly fast: boolean;
}

export interface SizedRow {
  readonly cpu: number;
  readonly ram: number;
  readonly hdd: number;
  readonly is_high_performance: number;
}

export const sizesOf = ({ cpu, ram, hdd, is_high_performance }: SizedRow): Sizes => ({
  cpu,
  ram,
  hdd,
  fast: is_high_performance === 1,
});

/** Input of the flow: what differs. */
export type ResizeFlowInput = Partial<Sizes>;

/** Work on a server as far as it matters here, the running one first. */
export type SizedQueue = readonly { readonly name: string; readonly input: unknown }[];

const resizesIn = (queue: SizedQueue): ResizeFlowInput[] =>
  queue.filter(({ name }) => name === flowName("Resize")).map(({ input }) => input as ResizeFlowInput);

/** What the server has when all of the queue is done. */
export const sizesAfter = (now: Sizes, queue: SizedQueue): Sizes =>
  resizesIn(queue).reduce<Sizes>((sizes, input) => ({ ...sizes, ...input }), now);

/** The most it has on the way there: what must be held for it. Also to be set anew when a resize has ended, however. */
export function heldSizes(now: Sizes, resizes: readonly ResizeFlowInput[]): Pick<Sizes, "cpu" | "ram" | "hdd"> {
  const most = (key: "cpu" | "ram" | "hdd") => Math.max(now[key], ...resizes.map((input) => input[key] ?? 0));
  return { cpu: most("cpu"), ram: most("ram"), hdd: most("hdd") };
}

/** Those of the queue and what comes behind them. */
export const heldWith = (now: Sizes, queue: SizedQueue, input: ResizeFlowInput) =>
  heldSizes(now, [...resizesIn(queue), input]);

export interface ResizeInput {
  readonly CPU?: number;
  readonly RAM?: number;
  readonly HDD?: number;
  readonly IsHighPerformance?: boolean;
  readonly AllowRestart?: boolean;
}

export interface CurrentServer {
  readonly id: number;
  /** What the server will have when the turn comes. */
  readonly sizes: Sizes;
  /** It will be on then. */
  readonly isOn: boolean;
  /**
   * The most that the machine as it runs can grow to. Null where nobody can say (it is off, or others come first): then a change of
   * cores or memory counts as one that needs a restart.
   */
  readonly reach: { readonly cpus: number; readonly memory: number } | null;
  /** MB that the image needs; 0 if it is gone. */
  readonly minRam: number;
}

export interface ResizePlan {
  readonly input: ResizeFlowInput;
  /** None: nothing changes, and the action is born `Completed`. */
  readonly steps: readonly string[];
  readonly restart: boolean;
}

/** Throws `disk_cannot_shrink`, `restart_needed`, or `validation_failed` for less memory than the image needs. */
export function planResize(spec: ResizeInput, { id, sizes, isOn, reach, minRam }: CurrentServer): ResizePlan {
  const {
    CPU: cpu = sizes.cpu,
    RAM: ram = sizes.ram,
    HDD: hdd = sizes.hdd,
    IsHighPerformance: fast = sizes.fast,
  } = spec;
  if (ram < minRam && ram !== sizes.ram)
    throw invalidFields([
      fieldError(
        "/RAM",
        "out_of_range",
        `RAM must be at least ${minRam} MB for the image of server ${id}, not ${ram}.`,
      ),
    ]);
  if (hdd < sizes.hdd)
    throw errorAt("disk_cannot_shrink", "/HDD", `The disk of server ${id} has ${sizes.hdd} GB: ${hdd} GB is less.`);
  const input: ResizeFlowInput = {
    ...(cpu !== sizes.cpu && { cpu }),
    ...(ram !== sizes.ram && { ram }),
    ...(hdd !== sizes.hdd && { hdd }),
    ...(fast !== sizes.fast && { fast }),
  };
  const isWithin = (now: number, wanted: number, most: number) => wanted === now || (wanted > now && wanted <= most);
  const causes = [
    ...(isWithin(sizes.cpu, cpu, reach?.cpus ?? 0) ? [] : [`CPU ${cpu} (it has ${sizes.cpu})`]),
    ...(isWithin(sizes.ram, ram, reach?.memory ?? 0) ? [] : [`RAM ${ram} (it has ${sizes.ram})`]),
  ];
  const restart = isOn && causes.length > 0;
  if (restart && spec.AllowRestart === false)
    throw new ApiError("restart_needed", `Server ${id} is on and has to be restarted for ${causes.join(" and ")}.`);
  const needed: Readonly<Record<(typeof actionSteps.Resize)[number], boolean>> = {
    Stop: restart,
    Cpu: "cpu" in input || "fast" in input,
    Memory: "ram" in input,
    Start: restart,
    Disk: "hdd" in input,
  };
  return { input, steps: actionSteps.Resize.filter((step) => needed[step]), restart };
}
