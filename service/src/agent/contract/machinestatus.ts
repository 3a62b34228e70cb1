/** Schemas of results about servers. Their fields are described at the types of the same names in `drivers/machine/interface.ts`. */
import { Type } from "typebox";
import { boolean, count, id, many, measure, nullable, oneOf, only, prose, time } from "./values.ts";

/** How a run of a server ended. */
const Exit = only({ reason: oneOf(["order", "guest", "host", "died"]), at: time(), detail: prose() });

/** A start or an end of a server. */
export const PowerEvent = only({ id: id(), boot: count(), exit: nullable(Exit) });

/** Whether the identity of a guest was removed. */
export const Identity = only({ removed: boolean(), detail: prose() });

const MachineStatus = only({
  id: Type.Integer({ minimum: 1 }),
  label: nullable(only({ uuid: prose(), name: prose(), cpus: measure(), memory: measure(), image: prose() })),
  power: oneOf(["off", "running", "paused"]),
  trouble: nullable(oneOf(["NotResponding", "IoError", "Paused"])),
  canResume: boolean(),
  since: nullable(time()),
  exit: nullable(Exit),
  boot: count(),
  version: count(),
  cpus: measure(),
  memory: measure(),
  reach: only({ cpus: measure(), memory: measure() }),
  stage: nullable(oneOf(["starting", "login", "ready"])),
  disks: many(only({ version: count(), gb: measure(), allocated: measure() })),
  usage: nullable(
    only({
      cpuTime: measure(),
      memory: nullable(measure()),
      resident: measure(),
      diskRead: measure(),
      diskWritten: measure(),
    }),
  ),
  detail: prose(),
});

/** State of the host and all its servers. */
export const MachinesStatus = only({
  ready: boolean(),
  detail: prose(),
  accelerator: nullable(oneOf(["kvm", "tcg"])),
  capacity: only({ cores: measure(), memory: measure(), disk: measure(), diskFree: measure() }),
  machines: many(MachineStatus),
});

/** Kind of guest operating system. */
export const family = () => oneOf(["Linux", "Windows", "Bsd"]);

/** An image that the operator of the host offers. */
export const OperatorImage = only({
  name: prose(),
  title: prose(),
  family: family(),
  os: prose(),
  minRam: measure(),
  hdd: measure(),
  folder: nullable(prose()),
  guest: nullable(oneOf(["tiny", "cloud-init"])),
});

const heldName = { name: prose(), kind: oneOf(["image", "snapshot"]) };

/** The name of an image or snapshot on the host. */
export const HeldName = only(heldName);

/** An image or snapshot on the host. */
export const HeldImage = only({
  ...heldName,
  title: prose(),
  family: family(),
  minRam: measure(),
  gb: measure(),
  bytes: measure(),
});

/** Size of an image that was made from a server. */
export const ImageSize = only({ gb: measure(), bytes: measure(), identity: Identity });

/** Bytes done and, if known, the total. */
export const Progress = only({ done: measure(), total: nullable(measure()) });
