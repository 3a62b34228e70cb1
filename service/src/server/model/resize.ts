/**
 * Plans a resize: its steps, whether it needs a restart, and the sizes that are reserved in quotas and capacity. It is validated against
 * the sizes that the server will have after all actions that are queued before it.
 */
import { actionSteps } from "@brume/api/action.ts";
import { ApiError, errorAt, fieldError, invalidFields } from "../../base/error.ts";
import { flowName } from "./state.ts";

/** Cores, MB, GB; `fast`: twice the CPU share. */
export interface Sizes {
  readonly cpu: number;
  readonly ram: number;
  readonly hdd: number;
  readonly fast: boolean;
}

/** Columns of the row that contain the sizes. */
export interface SizedRow {
  readonly cpu: number;
  readonly ram: number;
  readonly hdd: number;
  readonly is_high_performance: number;
}

/** Returns the sizes in the row. */
export const sizesOf = ({ cpu, ram, hdd, is_high_performance }: SizedRow): Sizes => ({
  cpu,
  ram,
  hdd,
  fast: is_high_performance === 1,
});

/** Input of the flow `Resize`, stored in task rows: the sizes that change. */
export type ResizeFlowInput = Partial<Sizes>;

/** The tasks of a server, the running one first. */
export type SizedQueue = readonly { readonly name: string; readonly input: unknown }[];

const resizesIn = (queue: SizedQueue): ResizeFlowInput[] =>
  queue.filter(({ name }) => name === flowName("Resize")).map(({ input }) => input as ResizeFlowInput);

/** Returns the sizes after all tasks of the queue. */
export const sizesAfter = (now: Sizes, queue: SizedQueue): Sizes =>
  resizesIn(queue).reduce<Sizes>((sizes, input) => ({ ...sizes, ...input }), now);

/** Returns the sizes to reserve: the largest of each during the resizes. To be stored again when a resize has ended. */
export function heldSizes(now: Sizes, resizes: readonly ResizeFlowInput[]): Pick<Sizes, "cpu" | "ram" | "hdd"> {
  const most = (key: "cpu" | "ram" | "hdd") => Math.max(now[key], ...resizes.map((input) => input[key] ?? 0));
  return { cpu: most("cpu"), ram: most("ram"), hdd: most("hdd") };
}

/** Returns the sizes to reserve for the queue and one more resize. */
export const heldWith = (now: Sizes, queue: SizedQueue, input: ResizeFlowInput) =>
  heldSizes(now, [...resizesIn(queue), input]);

/** Body of the request. */
export interface ResizeInput {
  readonly CPU?: number;
  readonly RAM?: number;
  readonly HDD?: number;
  readonly IsHighPerformance?: boolean;
  readonly AllowRestart?: boolean;
}

/** The server that is resized. */
export interface CurrentServer {
  readonly id: number;
  /** Sizes after all queued actions. */
  readonly sizes: Sizes;
  /** Whether it will be on then. */
  readonly isOn: boolean;
  /**
   * Largest size that the running VM can reach live. Null: unknown, because it is off or other actions come first; then a change of cores
   * or memory counts as one that needs a restart.
   */
  readonly reach: { readonly cpus: number; readonly memory: number } | null;
  /** MB that the image needs; 0 if it was deleted. */
  readonly minRam: number;
}

/** The validated resize. */
export interface ResizePlan {
  readonly input: ResizeFlowInput;
  /** Names of the steps. None: nothing changes, and the action is `Completed` at once. */
  readonly steps: readonly string[];
  readonly restart: boolean;
}

/** Returns the plan. Throws `disk_cannot_shrink`, `restart_needed`, or `validation_failed` for less memory than the image needs. */
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
    throw errorAt(
      "disk_cannot_shrink",
      "/HDD",
      `The disk of server ${id} has ${sizes.hdd} GB and cannot shrink to ${hdd} GB.`,
    );
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
    throw new ApiError(
      "restart_needed",
      `Server ${id} is on and has to be restarted for ${causes.join(" and ")}. Allow it (AllowRestart), or power the server off first.`,
    );
  const needed: Readonly<Record<(typeof actionSteps.Resize)[number], boolean>> = {
    Stop: restart,
    Cpu: "cpu" in input || "fast" in input,
    Memory: "ram" in input,
    Start: restart,
    Disk: "hdd" in input,
  };
  return { input, steps: actionSteps.Resize.filter((step) => needed[step]), restart };
}
