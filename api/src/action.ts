/**
 * Actions of servers: their types, the steps of each, and the server states in which each is allowed (docs/spec.md#action,
 * #server-states). The rules, the flows and the API reference read these tables.
 */
import type { Static } from "typebox";
import { boolean, date, id, integer, list, nullable, object, optional, optionalId, text, word } from "./common.ts";
import { forms } from "./form.ts";
import { MachineError } from "./work.ts";

/** `NeedMoney` is part of the original API and never used, because nothing is billed. */
export const serverStates = ["New", "Active", "Blocked", "NeedMoney", "Deleting", "Failed"] as const;
/** A value of `State` of a server. The actions that it allows: docs/spec.md#server-states. */
export type ServerState = (typeof serverStates)[number];

/** Types that `POST …/action` accepts. */
export const requestTypes = [
  "PowerOn",
  "PowerOff",
  "PowerReboot",
  "ShutDownGuestOS",
  "RebootGuestOS",
  "AddNetwork",
  "RemoveNetwork",
  "EditNetworkBandwidth",
] as const;
/** Type of an action that a client can request by `POST …/action`. */
export type RequestType = (typeof requestTypes)[number];

/** Values of `Type` in a response: those that a client requests, and those that other operations start. */
export const actionTypes = [...requestTypes, "Create", "Resize", "Copy", "Rebuild", "Delete"] as const;
/** A value of `actionTypes`. */
export type ActionType = (typeof actionTypes)[number];

/** States of an action. `Postponed`: it waits for the actions before it. */
export const actionStates = ["Postponed", "InProgress", "Completed", "Failed", "Canceled"] as const;

/**
 * Steps of each type, in order. `Resize` has only those that the change needs. With `WaitFor`, a last step `Ssh` or `Guest` follows.
 */
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

/** When a boot counts as complete: the VM runs, port 22 sends an SSH banner, or the guest reports the end of its first boot. */
export const waitFors = ["Power", "Ssh", "Guest"] as const;
/** Condition that completes a boot. */
export type WaitFor = (typeof waitFors)[number];

/** The server state that decides whether an action is allowed: `on` or `off` for `Active`, otherwise the state. */
export type EffectiveState = "on" | "off" | "Blocked" | "Deleting" | "Failed";

/**
 * What happens to an action in a state. `run`: it is queued and runs; `same`: it is queued and completes without a change; `no`: it is
 * rejected; `now`: it runs before the queue; `done`: it is accepted and has no effect.
 */
export type ActionVerdict = "run" | "same" | "no" | "now" | "done";

/** Requests to a server that the state table decides: its actions, and `Image`, the creation of an image from it. */
export type ServerRequest = Exclude<ActionType, "Create"> | "Image";

const onlyActive = { on: "run", off: "run", Blocked: "no", Deleting: "no", Failed: "no" } as const;

/** By request and by the state that the server will have when the action starts; `New` counts as on. */
export const actionVerdicts: Readonly<Record<ServerRequest, Readonly<Record<EffectiveState, ActionVerdict>>>> = {
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

/** Types that can be canceled, by the state of the action. A deletion is final; other actions end at once or cannot be undone. */
export const cancelable: Readonly<Partial<Record<string, readonly ActionType[]>>> = {
  Postponed: actionTypes.filter((type) => type !== "Delete"),
  InProgress: ["Create", "Copy", "Resize", "Rebuild", "AddNetwork", "ShutDownGuestOS", "RebootGuestOS"],
};

/** State of the server after a completed action. A type that is absent leaves the state unchanged. */
export const actionOutcomes: Readonly<Partial<Record<ActionType, EffectiveState>>> = {
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

/** Numbers that the API reference and the service share. */
export const actionLimits = {
  /** Most queued actions of one server. */
  waiting: 20,
  /** Ended actions that are stored for each server. */
  kept: 1000,
  /** Seconds for the guest to shut down: default and maximum of `Timeout`, and inside a resize. */
  shutdown: 120,
  longestShutdown: 600,
  resizeShutdown: 60,
  /** Longest wait for `WaitFor`, in seconds. */
  waitFor: 600,
} as const;

const Step = object("Step", "One step of an action.", {
  Name: text({ description: "Name of the step, such as `Boot`." }),
  State: word(["Pending", "InProgress", "Completed", "Failed", "Undone"], {
    description:
      "`Pending`: not started. `InProgress`: running. `Completed`: done. `Failed`: failed for good. `Undone`: undone after a later step failed.",
  }),
  StartDate: nullable(date({ description: "When the step started. `null`: not started." })),
  EndDate: nullable(date({ description: "When the step ended. `null`: not ended." })),
  Detail: text({ description: "One sentence about the progress or the reason of a failure; may be empty." }),
});

/** An action: the progress of work on a server. */
export const Action = object("Action", "The progress of work on a server.", {
  ID: id({ description: "Id of the action." }),
  Type: word(actionTypes, {
    description:
      "What the action does. `Create`, `Resize`, `Copy`, `Rebuild` and `Delete` are started by other operations than the request for an action.",
  }),
  State: word(actionStates, {
    description:
      "`Postponed`: waits for earlier actions of the server. `InProgress`: runs. `Completed`: done. `Failed`: failed and undone. `Canceled`: ended by a client or by a later action.",
  }),
  StartDate: date({ description: "When the action was accepted." }),
  EndDate: nullable(date({ description: "When the action ended. `null`: it has not ended." })),
  ServerID: id({ description: "Id of the server." }),
  Progress: integer(0, 100, {
    description: "Percent. It never decreases and is 100 exactly when `State` is `Completed`.",
  }),
  Steps: list(Step, { description: "Steps in their order." }),
  Error: nullable(MachineError),
});
/** TypeScript type of this schema. */
export type Action = Static<typeof Action>;

/** The request field `WaitFor`. */
export const waitForField = optional(
  word(waitFors, {
    description:
      "When the action completes. `Power` (default): the VM runs. `Ssh`: port 22 sends an SSH banner. `Guest`: the guest reports the end of its first boot. At most 600 s.",
  }),
);

/** Request for an action on a server. */
export const ActionInput = object(
  "StartActionRequest",
  "An action on a server. `Type` decides which other fields are used.",
  {
    Type: word(requestTypes, { description: "What the action does." }),
    NetworkID: optionalId({ description: "A network in the location of the server, or the shared network." }),
    NetworkLinkID: optionalId({ description: "Id of the link, instead of `NetworkID`." }),
    Bandwidth: optional(
      integer(1, 10_000, {
        description: "Mbit/s of the link in each direction. Default for a new link: that of the network.",
      }),
    ),
    IP: optional(
      text({ maxLength: 64, description: "A free address of the network. Default: the lowest free address." }),
    ),
    Timeout: optional(
      integer(1, actionLimits.longestShutdown, { description: "Seconds to wait for the guest. Default 120." }),
    ),
    Force: optional(boolean({ description: "`true`: power off when `Timeout` has passed. `false` (default): fail." })),
    WaitFor: waitForField,
    OnBusy: optional(
      word(["Queue", "Fail"], {
        description: "`Queue` (default): wait behind the running action. `Fail`: respond 409 `server_busy`.",
      }),
    ),
  },
  forms([
    {
      title: "PowerRequest",
      description: "Starts or resets the VM.",
      where: { Type: ["PowerOn", "PowerReboot"] },
      without: ["NetworkID", "NetworkLinkID", "Bandwidth", "IP", "Timeout", "Force"],
    },
    {
      title: "PowerOffRequest",
      description: "Powers the VM off at once.",
      where: { Type: ["PowerOff"] },
      without: ["NetworkID", "NetworkLinkID", "Bandwidth", "IP", "Timeout", "Force", "WaitFor"],
    },
    {
      title: "ShutDownRequest",
      description: "Requests the guest to shut down.",
      where: { Type: ["ShutDownGuestOS"] },
      without: ["NetworkID", "NetworkLinkID", "Bandwidth", "IP", "WaitFor"],
    },
    {
      title: "RebootRequest",
      description: "Requests the guest to shut down, then starts it again.",
      where: { Type: ["RebootGuestOS"] },
      without: ["NetworkID", "NetworkLinkID", "Bandwidth", "IP"],
    },
    {
      title: "AddNetworkRequest",
      description: "Links the server to a network.",
      where: { Type: ["AddNetwork"] },
      needs: ["NetworkID"],
      without: ["NetworkLinkID", "Timeout", "Force", "WaitFor"],
    },
    {
      title: "RemoveNetworkRequest",
      description: "Removes the link to a network.",
      where: { Type: ["RemoveNetwork"] },
      needs: ["NetworkID"],
      without: ["Bandwidth", "IP", "Timeout", "Force", "WaitFor"],
    },
    {
      title: "RemoveNetworkLinkRequest",
      description: "Removes a link by its id.",
      where: { Type: ["RemoveNetwork"] },
      needs: ["NetworkLinkID"],
      without: ["NetworkID", "Bandwidth", "IP", "Timeout", "Force", "WaitFor"],
    },
    {
      title: "EditBandwidthRequest",
      description: "Sets the bandwidth of the link to a network.",
      where: { Type: ["EditNetworkBandwidth"] },
      needs: ["NetworkID", "Bandwidth"],
      without: ["IP", "Timeout", "Force", "WaitFor"],
    },
    {
      title: "EditLinkBandwidthRequest",
      description: "Sets the bandwidth of a link by its id.",
      where: { Type: ["EditNetworkBandwidth"] },
      needs: ["NetworkLinkID", "Bandwidth"],
      without: ["NetworkID", "IP", "Timeout", "Force", "WaitFor"],
    },
  ]),
);
/** TypeScript type of this schema. */
export type ActionInput = Static<typeof ActionInput>;
