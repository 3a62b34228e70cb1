/**
 * Servers without machines, for tests, for the console, and for hosts where nothing may be run: the same wishes, refusals, answers
 * and events. Guests boot in the time that they are given and then sit there. Whoever holds the object breaks things, writes to disks
 * and switches guests off from inside; with a file, a new object goes on where the last one was killed.
 */

import { createKeyedQueue } from "../../../base/serialqueue.ts";
import { lastLines } from "../console/log.ts";
import { DiskError, GIB } from "../disk/disk.ts";
import type {
  Accelerator,
  BootStage,
  Capacity,
  Exit,
  HeldImage,
  MachineDriver,
  MachineSpec,
  MachineTrouble,
  OperatorImage,
  PowerEvent,
} from "../interface.ts";
import { limitsFor, qemuArguments } from "../qemu/arguments.ts";
import { createQueue } from "../qemu/bootqueue.ts";
import { SilenceError } from "../qemu/qmp.ts";
import { writeSeed } from "../seed/volume.ts";
import { withDevices } from "./nics.ts";
import {
  changeServer,
  type Disk,
  type Image,
  newServer,
  type Power,
  runningOf,
  type Server,
  showServer,
  talk,
} from "./server.ts";
import { openSimulatedState } from "./state.ts";

type Verb = Exclude<keyof MachineDriver, "onPower" | "onDevice" | "deviceOf" | "close">;

export interface SimOptions {
  readonly now: () => number;
  /** Names of images that servers can be made from, beside those made here; null: whatever they are called. */
  readonly images: readonly string[] | null;
  /** In the names of devices; `sim` by default. */
  readonly tag?: string;
  /** What the operator offers; nothing by default. */
  readonly offered?: readonly OperatorImage[];
  /** Milliseconds from a start until the guest is ready; 0 by default. */
  readonly bootTime?: number;
  /** How many may boot at once; all by default. */
  readonly boots?: number;
  /** What it pretends to be; processors can be added to a running server only with `kvm`. */
  readonly accelerator?: Accelerator;
  readonly capacity?: Capacity;
  /** Where everything is kept after each change. */
  readonly file?: string;
}

export interface SimulatedMachines extends MachineDriver {
  /** The verb's next `times` calls reject, before anything was done or after everything was. */
  fail(verb: Verb, times?: number, when?: "before" | "after"): void;
  /** The verb takes this many milliseconds from now on. */
  delay(verb: Verb, milliseconds: number): void;
  /** The process ends, by nobody's order, or with the whole host. */
  kill(id: number, reason?: "died" | "host"): void;
  /** The guest switches itself off. */
  switchOff(id: number): void;
  /** From now on the guest does not hear its power button, or unplugging; or hears again. */
  deafen(id: number, deaf: boolean): void;
  /** From now on its process does not answer, or is paused, for lack of room or so; null: it is well again. */
  trouble(id: number, trouble: MachineTrouble | null): void;
  /** GB that are free on the machine's disks from now on. */
  leave(free: number): void;
  /** The disk of that version is gone. */
  lose(id: number): void;
  /** From now on no file system can be opened, for this reason; null: each can. */
  closeDisks(reason: string | null): void;
  /** What is written on the disk that is in use. */
  write(id: number, text: string): void;
  /** Null: there is no disk. */
  read(id: number): string | null;
  /** What is on images, and on snapshots that are kept for some. */
  images(): readonly Pick<Image, "content" | "isKept">[];
}

const plenty: Capacity = { cores: 64, memory: 2 ** 20, disk: 65_536, diskFree: 65_536 };

export function createSim(options: SimOptions): SimulatedMachines {
  const { now, bootTime = 0, boots = Infinity, accelerator = "tcg", capacity = plenty, file } = options;
  let free = capacity.diskFree;
  let closed: string | null = null;
  const kept = openSimulatedState<Server, Image>(file);
  const { servers, images } = kept;
  // What an earlier release kept had less.
  for (const [id, server] of servers) servers.set(id, { ...newServer(id), ...server });
  const turns = createKeyedQueue();
  const queue = createQueue(boots, now);
  const places = new Map<number, () => void>();
  const listeners = new Set<(event: PowerEvent) => void>();
  const failures = new Map<Verb, { times: number; when: "before" | "after" }>();
  const delays = new Map<Verb, number>();

  function failNow(verb: Verb, when: "before" | "after"): void {
    const failure = failures.get(verb);
    if (failure === undefined || failure.when !== when || failure.times === 0) return;
    failure.times--;
    throw new Error(`the simulated machine refuses ${verb}`);
  }
  /** Every verb goes through here: one at a time per server, with the troubles that were ordered. */
  const act = <Result>(verb: Verb, ids: readonly number[], work: () => Result | Promise<Result>): Promise<Result> =>
    turns.run(ids, async () => {
      const wait = delays.get(verb) ?? 0;
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      failNow(verb, "before");
      const result = await work();
      kept.keep(ids);
      failNow(verb, "after");
      return result;
    });

  const running = (id: number): Power | null => runningOf(servers.get(id));
  const stageOf = (power: Power): BootStage => (now() - power.startedAt >= bootTime ? "ready" : "starting");
  /** The one in use, else the newest. */
  const diskOf = (id: number): Disk | undefined => {
    const version = running(id)?.version;
    const disks = servers.get(id)?.disks ?? [];
    return version === undefined ? disks.at(-1) : disks.find((disk) => disk.version === version);
  };

  function end(id: number, reason: Exit["reason"], detail = ""): void {
    const power = running(id);
    if (power === null) return;
    power.exit = { reason, at: now(), detail };
    kept.keep([id]);
    for (const listener of listeners) listener({ id, boot: power.boot, exit: power.exit });
  }

  function mark(
    server: Server,
    { uuid, name = "", cpus, memory }: MachineSpec,
    image = server.label?.image ?? "",
  ): void {
    server.label = { uuid, name, cpus, memory, image };
  }

  function start(machine: MachineSpec): void {
    const { id, uuid, boot, cpus, memory, share, disk, nics, seed } = machine;
    const server = servers.get(id);
    const present = server?.disks.find((one) => one.version === disk.version);
    end(id, "order");
    if (server === undefined || present === undefined)
      throw new DiskError(`its disk is missing: server ${id} has no disk of version ${disk.version}`);
    writeSeed(seed);
    qemuArguments({ tag: "sim", machine, boot: "kernel", layer: 1, accelerator });
    present.gb = Math.max(present.gb, disk.gb);
    const limits = limitsFor({ machine, boot: "kernel" });
    server.trouble = null;
    mark(server, machine);
    server.power = {
      boot,
      version: disk.version,
      startedAt: now(),
      maxCpus: limits.cpus,
      maxMemory: limits.memory,
      minCpus: cpus,
      isEmulated: accelerator === "tcg",
      minMemory: memory,
      cpus,
      memory,
      share,
      nics: nics.map((nic) => nic.id),
      exit: null,
    };
    server.logs = [
      `Server ${id} (${uuid}) is simulated.\nBRUME-READY instance=simulated\nlogin: `,
      ...server.logs.slice(0, 1),
    ];
    kept.keep([id]);
    for (const listener of listeners) listener({ id, boot, exit: null });
  }

  /** One that is paused goes on, if there is room for what it writes. */
  function resume(id: number): void {
    const server = servers.get(id);
    if (server === undefined || server.trouble === null || server.trouble === "NotResponding") return;
    if (server.trouble === "IoError" && free <= 0) throw new Error("the machine has no room for what its disk writes");
    server.trouble = null;
  }
  /** Of one that runs. */
  function mustAnswer(id: number): void {
    if (running(id) !== null && servers.get(id)?.trouble === "NotResponding")
      throw new SilenceError(`the simulated server ${id} did not answer`);
  }
  function mustRun(id: number): void {
    if (running(id) === null) throw new Error(`server ${id} is off`);
  }

  return withDevices<Omit<SimulatedMachines, "deviceOf" | "onDevice">>(options.tag ?? "sim", () => {}, {
    ensureDisk(machine, source) {
      const { id, disk } = machine;
      const from = "server" in source ? source.server : null;
      return act("ensureDisk", from === null ? [id] : [id, from], () => {
        const server = servers.get(id) ?? newServer(id);
        const owner = server.label?.uuid ?? machine.uuid;
        if (disk.version === 1 && owner !== machine.uuid)
          throw new DiskError(`the folder of server ${id} belongs to another server, which the database does not know`);
        servers.set(id, server);
        const present = server.disks.find((one) => one.version === disk.version);
        if (present !== undefined) {
          present.gb = Math.max(present.gb, disk.gb);
          return;
        }
        const { gb, content } = contentOf(source);
        server.disks.push({ version: disk.version, gb: Math.max(gb, disk.gb), content });
        server.disks.sort((a, b) => a.version - b.version);
        const image = "image" in source ? source.image : servers.get(source.server)?.label?.image;
        mark(server, machine, image);
      });
      function contentOf(spec: typeof source): { gb: number; content: string } {
        if ("server" in spec) {
          const other = diskOf(spec.server);
          if (other === undefined) throw new Error(`server ${spec.server} has no disk`);
          return other;
        }
        const image = images.get(spec.image);
        if (image?.isKept === false) return image;
        if (options.images?.includes(spec.image) !== false) return { gb: 1, content: "" };
        throw new Error(`There is no image "${spec.image}".`);
      }
    },
    ensureIdentityRemoved: (id, version) =>
      act("ensureIdentityRemoved", [id], () => {
        if (running(id) !== null) throw new Error(`server ${id} runs`);
        if (servers.get(id)?.disks.some((disk) => disk.version === version) !== true)
          throw new Error(`server ${id} has no disk of version ${version}`);
        return { removed: closed === null, detail: closed ?? "" };
      }),
    ensureOnlyDisk: (id, version) =>
      act("ensureOnlyDisk", [id], () => {
        const server = servers.get(id);
        const on = running(id);
        if (on !== null && on.version !== version)
          throw new Error(`server ${id} runs on version ${on.version} of its disk`);
        if (server?.disks.some((disk) => disk.version === version) !== true)
          throw new Error(`server ${id} has no disk of version ${version}`);
        server.disks = server.disks.filter((disk) => disk.version === version);
      }),
    ensureSnapshot: (id, name) =>
      act("ensureSnapshot", [id], () => {
        const disk = diskOf(id);
        if (images.has(name)) return;
        mustAnswer(id);
        if (disk === undefined) throw new Error(`server ${id} has no disk`);
        images.set(name, { name, gb: disk.gb, content: disk.content, isKept: true });
        kept.keepAll();
      }),
    ensureImage: (_id, name, { keepsIdentity = false }, signal) =>
      act("ensureImage", [], () => {
        signal?.throwIfAborted();
        const image = images.get(name);
        if (image === undefined) throw new Error(`there is no snapshot for image "${name}"`);
        const identity = { removed: !keepsIdentity, detail: keepsIdentity ? "it was kept as it is" : "" };
        images.set(name, { ...image, isKept: false });
        kept.keepAll();
        return { gb: image.gb, bytes: Math.min(image.gb * GIB, image.content.length), identity };
      }),
    ensureRunning: (machine) =>
      act("ensureRunning", [machine.id], () => {
        const { id, owner, boot } = machine;
        for (const [other, leave] of places) {
          const power = running(other);
          if (power === null || stageOf(power) === "ready") leave();
        }
        const isUp = (running(id)?.boot ?? 0) >= boot;
        if (isUp) queue.quit(id);
        if (isUp) resume(id);
        const place = isUp ? null : queue.enter(id, owner);
        if (typeof place !== "function") return place;
        places.set(id, place);
        start(machine);
        return null;
      }),
    ensureStopped: (id, how) =>
      act("ensureStopped", [id], () => {
        queue.quit(id);
        const deaf = how === "ask" && servers.get(id)?.deaf === true && running(id) !== null;
        if (!deaf) end(id, how === "cut" ? "order" : "guest");
        return !deaf;
      }),
    apply: (machine) =>
      act("apply", [machine.id], () => {
        const server = servers.get(machine.id);
        mustAnswer(machine.id);
        if (server !== undefined) mark(server, machine);
        return changeServer(server, machine);
      }),
    listImages: () =>
      act("listImages", [], () =>
        [...images.values()].map(({ name, gb, content, isKept }): HeldImage => {
          const kind = isKept ? "snapshot" : "image";
          return { name, kind, title: name, family: "Linux", minRam: 128, gb, bytes: content.length };
        }),
      ),
    remove: (id) =>
      act("remove", [id], () => {
        queue.quit(id);
        end(id, "order");
        servers.delete(id);
      }),
    removeImage: (name) =>
      act("removeImage", [], () => {
        if (images.delete(name)) kept.keepAll();
      }),
    holdDisks: (id) =>
      act("holdDisks", [id], () => {
        if (diskOf(id) === undefined) throw new Error(`server ${id} has no disk`);
        return null;
      }),
    releaseDisks: () => act("releaseDisks", [], () => {}),
    observe: () =>
      act("observe", [], () => ({
        ready: true,
        detail: "simulated",
        accelerator: null,
        capacity: { ...capacity, diskFree: free },
        machines: [...servers.values()]
          .map((server) => showServer(server, now(), stageOf, free > 0))
          .sort((a, b) => a.id - b.id),
      })),
    onPower(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    readLog: (id, { previous = false, tail } = {}) =>
      act("readLog", [], () => {
        const text = servers.get(id)?.logs[previous ? 1 : 0];
        return text === undefined ? null : tail === undefined ? text : lastLines(text, tail);
      }),
    openSerial: (id) =>
      act("openSerial", [], () => {
        mustRun(id);
        return talk("\r\nThis server is simulated.\r\nlogin: ", true);
      }),
    openVnc: (id) =>
      act("openVnc", [], () => {
        mustRun(id);
        return talk("RFB 003.008\n", false);
      }),
    listOperatorImages: () => act("listOperatorImages", [], () => options.offered ?? []),
    ensureFetched: (name) => act("ensureFetched", [], () => name),
    ensureImported: () =>
      act("ensureImported", [], () => ({ refused: "Simulated servers take no images from outside." })),
    checkOrigin: () => act("checkOrigin", [], () => null),
    close: () => turns.settle(),
    fail: (verb, times = 1, when = "before") => void failures.set(verb, { times, when }),
    delay: (verb, milliseconds) => void delays.set(verb, milliseconds),
    kill: (id, reason = "died") => end(id, reason, "killed"),
    switchOff: (id) => end(id, "guest"),
    deafen(id, deaf) {
      const server = servers.get(id);
      if (server !== undefined) server.deaf = deaf;
      kept.keep([id]);
    },
    trouble(id, trouble) {
      const server = servers.get(id);
      if (server !== undefined) server.trouble = trouble;
      kept.keep([id]);
    },
    leave(left) {
      free = left;
    },
    closeDisks(reason) {
      closed = reason;
    },
    lose(id) {
      const server = servers.get(id);
      if (server !== undefined) server.disks = [];
      kept.keep([id]);
    },
    write(id, text) {
      const disk = diskOf(id);
      if (disk !== undefined) disk.content = text;
      kept.keep([id]);
    },
    read: (id) => diskOf(id)?.content ?? null,
    images: () => [...images.values()].map(({ content, isKept }) => ({ content, isKept })),
  });
}
