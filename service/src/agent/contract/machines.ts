/** The verbs of `Machines`: life cycle and observation of servers (`drivers/machine/interface.ts`). */
import { type Static, Type } from "typebox";
import { Identity, MachinesStatus } from "./machinestatus.ts";
import { boolean, id, imageName, integer, line, list, mac, nullable, oneOf, only, optional } from "./values.ts";
import { sizes, times, verbs } from "./verb.ts";

/** Bytes in base64, where a file is not text. */
const Bytes = only({ base64: Type.String({ maxLength: 2 << 20, pattern: "^[A-Za-z0-9+/]*={0,2}$" }) });

/** A file on the seed volume. The name is one inside the volume, not on the host. */
const SeedFile = only({
  name: Type.String({ pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" }),
  content: Type.Union([Type.String({ maxLength: 2 << 20 }), Bytes]),
});

const uuid = () => Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" });
const version = () => integer(1, 2_147_483_647);

/** The desired state of a server. */
export const Machine = only({
  id: id(),
  uuid: uuid(),
  name: optional(line(64)),
  owner: id(),
  boot: integer(0, 2_147_483_647),
  cpus: integer(1, 1024),
  memory: integer(1, 1 << 24),
  share: integer(1, 2),
  disk: only({ version: version(), gb: integer(1, 65_536) }),
  nics: list(only({ id: id(), mac: mac() }), { maxItems: 64 }),
  seed: list(SeedFile, { maxItems: 16 }),
});
/** The desired state of a server, as it is sent. */
export type Machine = Static<typeof Machine>;

const Source = Type.Union([only({ image: imageName() }), only({ server: id() })]);
const change = oneOf(["same", "live", "nextStart"]);

/** Most servers in one observation of some. */
const mostObserved = 1000;

/** The verbs, by the name of the method. */
export const machineVerbs = verbs({
  ensureDisk: {
    summary: "Create a disk from an image or from the disk of another server",
    args: ["machine", "source"],
    body: only({ machine: Machine, source: Source }),
    answer: null,
    time: times.long,
    bytes: sizes.machine,
  },
  ensureIdentityRemoved: {
    summary: "Remove from a disk what identifies the guest that it was copied from",
    args: ["id", "version"],
    body: only({ id: id(), version: version() }),
    answer: Identity,
    time: times.long,
    extra: "signal",
  },
  ensureOnlyDisk: {
    summary: "Remove all disks of a server except this version",
    args: ["id", "version"],
    body: only({ id: id(), version: version() }),
    answer: null,
    time: times.change,
  },
  ensureRunning: {
    summary: "Start a server, or return its position in the boot queue",
    args: ["machine"],
    body: only({ machine: Machine }),
    answer: nullable(integer(0, 1_000_000)),
    time: times.change,
    bytes: sizes.machine,
  },
  ensureStopped: {
    summary: "Stop a server",
    args: ["id", "how"],
    body: only({ id: id(), how: oneOf(["cut", "shutdown"]) }),
    answer: boolean(),
    time: times.long,
    extra: "signal",
  },
  apply: {
    summary: "Change a server without a restart as far as possible",
    args: ["machine"],
    body: only({ machine: Machine }),
    answer: only({ cpus: change, memory: change, disk: change, share: change, nics: change }),
    time: times.change,
    bytes: sizes.machine,
  },
  remove: {
    summary: "Remove a server with its disks and devices",
    args: ["id"],
    body: only({ id: id() }),
    answer: null,
    time: times.change,
  },
  holdDisks: {
    summary: "Copy the disks of a server at this moment",
    args: ["id"],
    body: only({ id: id() }),
    answer: nullable(Type.String({ pattern: "^[1-9][0-9]*\\.copy$" })),
    time: times.change,
  },
  releaseDisks: {
    summary: "Remove all copies of disks",
    args: [],
    body: only({}),
    answer: null,
    time: times.change,
  },
  observe: {
    summary: "Return the state of the host and of all servers, or of some",
    args: ["only"],
    body: only({ only: optional(list(id(), { maxItems: mostObserved })) }),
    answer: MachinesStatus,
    time: times.read,
  },
});
