/**
 * Actions of servers: what can be ordered, what each does step by step, and in which state of a server. One table, read by the
 * rules (conflict), the flows, the console (which button lives), the CLI and the page of documentation (docs/spec.md#action, #server-states).
 */
import { type Static, Type } from "typebox";
import { boolean, date, id, integer, list, nullable, optional, optionalId, text, word } from "./common.ts";
import { MachineError } from "./work.ts";

/** `NeedMoney` is a word of the field that is never used, since nothing is billed. */
export const serverStates = ["New", "Active", "Blocked", "NeedMoney", "Deleting", "Failed"] as const;
export type ServerState = (typeof serverStates)[number];

/** By `POST …/action`. */
export const orderTypes = [
  "PowerOn",
  "PowerOff",
  "PowerReboot",
  "ShutDownGuestOS",
  "RebootGuestOS",
  "AddNetwork",
  "RemoveNetwork",
  "EditNetworkBandwidth",
] as const;
export type OrderType = (typeof orderTypes)[number];

export const actionTypes = [...orderTypes, "Create", "Resize", "Copy", "Rebuild", "Delete"] as const;
export type ActionType = (typeof actionTypes)[number];

export const actionStates = ["Postponed", "InProgress", "Completed", "Failed", "Canceled"] as const;

/** In order; `Resize` has those that are needed. Whoever waits for the guest has `Ssh` or `Guest` behind them. */
export const actionSteps = {
  PowerOn: ["Boot"],
  PowerOff: ["Stop"],
  PowerReboot: ["Reset"],
  ShutDownGuestOS: ["Shutdown"],
  RebootGuestOS: ["Shutdown", "Boot"],
  AddNetwork: ["Reserve", "Plug"],
  RemoveNetwork: ["Unplug", "Release"],
  EditNetworkBandwidth: ["Shape"],
  Create: ["Reserve", "Disk", "Network", "Boot"],
  Resize: ["Stop", "Cpu", "Memory", "Start", "Disk"],
  Copy: ["Reserve", "Snapshot", "Disk", "Identity", "Network", "Boot"],
  Rebuild: ["Stop", "Disk", "Boot"],
  Delete: ["Stop", "Network", "Disk", "Release"],
} as const satisfies Readonly<Record<ActionType, readonly string[]>>;

/** When a start counts as done: the machine runs, port 22 has greeted, the guest has reported the end of its first boot. */
export const waitFors = ["Power", "Ssh", "Guest"] as const;
export type WaitFor = (typeof waitFors)[number];

/** Actions that end with a running guest, and so can wait for it. */
export const waitingTypes = ["Create", "Copy", "Rebuild", "PowerOn", "PowerReboot", "RebootGuestOS"] as const;

/** A server as far as orders care: `Active`, on or off, or one of the other states. */
export type Standing = "on" | "off" | "Blocked" | "Deleting" | "Failed";

/**
 * `run`: done in its turn; `same`: `Completed` in its turn without a change; `no`: refused; `now`: jumps the queue; `done`: taken
 * without anything more to do.
 */
export type Verdict = "run" | "same" | "no" | "now" | "done";

/** What can be asked of a server: its actions, and to be the source of an image. */
export type Ask = Exclude<ActionType, "Create"> | "Image";

const onlyActive = { on: "run", off: "run", Blocked: "no", Deleting: "no", Failed: "no" } as const;

/** By the state that the server will have when its turn comes; `New` counts as on. */
export const verdicts: Readonly<Record<Ask, Readonly<Record<Standing, Verdict>>>> = {
  PowerOn: { ...onlyActive, on: "same" },
  PowerOff: { ...onlyActive, off: "same" },
  PowerReboot: { ...onlyActive, off: "no" },
  ShutDownGuestOS: { ...onlyActive, off: "same" },
  RebootGuestOS: { ...onlyActive, off: "no" },
  AddNetwork: onlyActive,
  RemoveNetwork: onlyActive,
  EditNetworkBandwidth: onlyActive,
  Resize: onlyActive,
  Copy: onlyActive,
  Image: onlyActive,
  Rebuild: onlyActive,
  Delete: { on: "now", off: "now", Blocked: "now", Deleting: "done", Failed: "now" },
};

/** Running actions that can be canceled at their next step and undone; the others are over in a moment, or cannot go back. */
export const cancelable: readonly ActionType[] = [
  "Create",
  "Copy",
  "Resize",
  "Rebuild",
  "AddNetwork",
  "ShutDownGuestOS",
  "RebootGuestOS",
];

/** How a server stands after what was ordered has been done; what is not named leaves it as it was. */
export const outcomes: Readonly<Partial<Record<ActionType, Standing>>> = {
  Create: "on",
  Copy: "on",
  Rebuild: "on",
  PowerOn: "on",
  PowerOff: "off",
  PowerReboot: "on",
  ShutDownGuestOS: "off",
  RebootGuestOS: "on",
  Delete: "Deleting",
};

export const actionLimits = {
  /** Waiting actions of one server. */
  waiting: 20,
  /** Ended ones that are kept. */
  kept: 1000,
  /** Seconds for the guest to shut down: by default, and inside a resize. */
  shutdown: 120,
  resizeShutdown: 60,
  /** Seconds for `WaitFor`. */
  waitFor: 600,
} as const;

const Step = Type.Object(
  {
    Name: text(),
    State: word(["Pending", "InProgress", "Completed", "Failed", "Undone"]),
    StartDate: nullable(date()),
    EndDate: nullable(date()),
    Detail: text({ description: "One sentence, or empty." }),
  },
  { title: "Step" },
);

export const Action = Type.Object(
  {
    ID: id(),
    Type: word(actionTypes),
    State: word(actionStates),
    StartDate: date({ description: "When it was accepted." }),
    EndDate: nullable(date()),
    ServerID: id(),
    Progress: integer(0, 100, { description: "Never falls; 100 exactly when `Completed`." }),
    Steps: list(Step),
    Error: nullable(MachineError),
  },
  { title: "Action" },
);
export type Action = Static<typeof Action>;

export const waitForField = optional(
  word(waitFors, {
    description:
      "When it counts as done: the machine runs (`Power`, default), port 22 has sent an SSH greeting, or the guest has reported the end of its first boot; at most 600 s.",
  }),
);

export const Order = Type.Object({
  Type: word(orderTypes),
  NetworkID: optionalId({ description: "Network of the server's location, the shared one included." }),
  NetworkLinkID: optionalId({ description: "The link, instead of `NetworkID`." }),
  Bandwidth: optional(integer(1, 10_000, { description: "Mbit/s, each direction by itself." })),
  IP: optional(text({ maxLength: 64, description: "Free address of the network. Default: the lowest." })),
  Timeout: optional(integer(1, 600, { description: "Seconds to wait for the guest. Default 120." })),
  Force: optional(boolean({ description: "Switch off when they are over, instead of failing. Default `false`." })),
  WaitFor: waitForField,
  OnBusy: optional(
    word(["Queue", "Fail"], { description: "Wait behind the running action (default), or 409 `server_busy`." }),
  ),
});
export type Order = Static<typeof Order>;
