/**
 * The simulated driver, for tests and for hosts that cannot run VMs. It has the same state changes, errors, results and events as the real
 * one. A guest boots in the configured time and then does nothing. Tests cause failures, write to disks and shut guests down from inside.
 * With a file, a new instance continues with the state of the previous one.
 */
import { createKeyedQueue } from "../../../base/serialqueue.ts";
import { forEachInTurns } from "../../../base/turn.ts";
import { lastLines } from "../console/log.ts";
import { DiskError, GIB } from "../disk/disk.ts";
import type {
  Accelerator,
  BootStage,
  Capacity,
  Exit,
  MachineDriver,
  MachineSpec,
  MachineStatus,
  MachineTrouble,
  OperatorImage,
  PowerEvent,
} from "../interface.ts";
import { limitsFor, qemuArguments } from "../qemu/arguments.ts";
import { createQueue } from "../qemu/bootqueue.ts";
import { SilenceError } from "../qemu/qmp.ts";
import { planSeed } from "../seed/volume.ts";
import { withDevices } from "./nics.ts";
import {
  changeServer,
  createConsole,
  type Disk,
  nameOf,
  newServer,
  type Power,
  runningOf,
  type SimulatedImage,
  type SimulatedServer,
  showImage,
  showServer,
} from "./server.ts";
import { openSimulatedState } from "./state.ts";

type Call = Exclude<keyof MachineDriver, "onPower" | "onDevice" | "deviceOf" | "close">;

/** Settings of the simulated driver. */
export interface SimOptions {
  readonly now: () => number;
  /** Names of images that disks can be created from, besides those made here; null: any name. */
  readonly images: readonly string[] | null;
  /** Tag in the names of devices; `sim` by default. */
  readonly tag?: string;
  /** Images of the operator; none by default. */
  readonly offered?: readonly OperatorImage[];
  /** Milliseconds from a start until the guest is ready; 0 by default. */
  readonly bootTime?: number;
  /** Maximum number of guests that boot at once; unlimited by default. */
  readonly boots?: number;
  /** Simulated accelerator; vCPUs can be unplugged only with `kvm`. */
  readonly accelerator?: Accelerator;
  readonly capacity?: Capacity;
  /** File that stores the state after each change. */
  readonly file?: string;
}

/** The driver, with controls for tests. */
export interface SimulatedMachines extends MachineDriver {
  /** Makes the next `times` calls of this method reject, before or after their work; with `server` only those for this one. */
  fail(call: Call, times?: number, when?: "before" | "after", server?: number): void;
  /** Delays all calls of this method by this number of milliseconds. */
  delay(call: Call, milliseconds: number): void;
  /** Makes all calls of this method wait until the returned function is called. */
  hold(call: Call): () => void;
  /** Ends the process without a request, or by a shutdown of the host. */
  kill(id: number, reason?: "died" | "host"): void;
  /** Shuts the guest down from inside. */
  switchOff(id: number): void;
  /** Makes the guest ignore its power button and unplug requests, or respond again. */
  deafen(id: number, deaf: boolean): void;
  /** Makes the VM unresponsive or paused; null: normal again. */
  trouble(id: number, trouble: MachineTrouble | null): void;
  /** Sets the free GB on the host's disks. */
  leave(free: number): void;
  /** Removes all disks of the server. */
  lose(id: number): void;
  /** Makes file systems unreadable for identity removal, for this reason; null: readable. */
  closeDisks(reason: string | null): void;
  /** Writes the content of the disk in use. */
  write(id: number, text: string): void;
  /** Returns the content of the disk in use; null if there is none. */
  read(id: number): string | null;
  /** Returns the contents of images and snapshots. */
  images(): readonly Pick<SimulatedImage, "content" | "isKept">[];
}

const defaultCapacity: Capacity = { cores: 64, memory: 2 ** 20, disk: 65_536, diskFree: 65_536 };

/** Creates a simulated driver. */
export function createSim(options: SimOptions): SimulatedMachines {
  const { now, bootTime = 0, boots = Infinity, accelerator = "tcg", capacity = defaultCapacity, file } = options;
  let free = capacity.diskFree;
  let closed: string | null = null;
  const state = openSimulatedState<SimulatedServer, SimulatedImage>(file);
  const { servers, images } = state;
  // Files of earlier releases may lack fields.
  for (const [id, server] of servers) servers.set(id, { ...newServer(id), ...server });
  const locks = createKeyedQueue();
  const queue = createQueue(boots, now);
  const bootSlots = new Map<number, () => void>();
  const listeners = new Set<(event: PowerEvent) => void>();
  const failures = new Map<Call, { times: number; when: "before" | "after"; server: number | undefined }>();
  const waits = new Map<Call, () => Promise<void>>();

  function failIfRequested(call: Call, when: "before" | "after", ids: readonly number[]): void {
    const failure = failures.get(call);
    if (failure === undefined || failure.when !== when || failure.times === 0) return;
    if (failure.server !== undefined && !ids.includes(failure.server)) return;
    failure.times--;
    throw new Error(`simulated failure of ${call}`);
  }
  /** Runs a call under the locks of its servers, with the requested delays and failures. */
  const run = <Result>(call: Call, ids: readonly number[], work: () => Result | Promise<Result>): Promise<Result> =>
    locks.run(ids, async () => {
      await waits.get(call)?.();
      failIfRequested(call, "before", ids);
      const result = await work();
      state.save(ids);
      failIfRequested(call, "after", ids);
      return result;
    });

  const running = (id: number): Power | null => runningOf(servers.get(id));
  const stageOf = (power: Power): BootStage => (now() - power.startedAt >= bootTime ? "ready" : "starting");
  /** Returns the disk in use, or the newest one. */
  const diskOf = (id: number): Disk | undefined => {
    const version = running(id)?.version;
    const disks = servers.get(id)?.disks ?? [];
    return version === undefined ? disks.at(-1) : disks.find((disk) => disk.version === version);
  };

  function end(id: number, reason: Exit["reason"], detail = ""): void {
    const power = running(id);
    if (power === null) return;
    power.exit = { reason, at: now(), detail };
    state.save([id]);
    for (const listener of listeners) listener({ id, boot: power.boot, exit: power.exit });
  }

  function writeLabel(
    server: SimulatedServer,
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
    planSeed(seed);
    qemuArguments({ tag: "sim", machine, boot: "kernel", layer: 1, accelerator });
    present.gb = Math.max(present.gb, disk.gb);
    const limits = limitsFor({ machine, boot: "kernel" });
    server.trouble = null;
    writeLabel(server, machine);
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
    state.save([id]);
    for (const listener of listeners) listener({ id, boot, exit: null });
  }

  /** Resumes a paused VM. Throws while the host has no free disk space. */
  function resume(id: number): void {
    const server = servers.get(id);
    if (server === undefined || server.trouble === null || server.trouble === "NotResponding") return;
    if (server.trouble === "IoError" && free <= 0) throw new Error(`the host has no free disk space for server ${id}`);
    server.trouble = null;
  }
  /** Throws if the VM runs but does not respond. */
  function requireResponsive(id: number): void {
    if (running(id) !== null && servers.get(id)?.trouble === "NotResponding")
      throw new SilenceError(`the simulated server ${id} did not respond`);
  }
  function requireRunning(id: number): void {
    if (running(id) === null) throw new Error(`server ${id} is off`);
  }

  return withDevices<Omit<SimulatedMachines, "deviceOf" | "onDevice">>(options.tag ?? "sim", () => {}, {
    ensureDisk(machine, source) {
      const { id, disk } = machine;
      const from = "server" in source ? source.server : null;
      return run("ensureDisk", from === null ? [id] : [id, from], () => {
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
        writeLabel(server, machine, image);
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
      run("ensureIdentityRemoved", [id], () => {
        if (running(id) !== null) throw new Error(`server ${id} is running`);
        if (servers.get(id)?.disks.some((disk) => disk.version === version) !== true)
          throw new Error(`server ${id} has no disk of version ${version}`);
        return { removed: closed === null, detail: closed ?? "" };
      }),
    ensureOnlyDisk: (id, version) =>
      run("ensureOnlyDisk", [id], () => {
        const server = servers.get(id);
        const on = running(id);
        if (on !== null && on.version !== version)
          throw new Error(`server ${id} runs on version ${on.version} of its disk`);
        if (server?.disks.some((disk) => disk.version === version) !== true)
          throw new Error(`server ${id} has no disk of version ${version}`);
        server.disks = server.disks.filter((disk) => disk.version === version);
      }),
    ensureSnapshot: (id, name) =>
      run("ensureSnapshot", [id], () => {
        const disk = diskOf(id);
        if (images.has(name)) return;
        requireResponsive(id);
        if (disk === undefined) throw new Error(`server ${id} has no disk`);
        images.set(name, { name, gb: disk.gb, content: disk.content, isKept: true });
        state.saveAll();
      }),
    ensureImage: (_id, name, { keepsIdentity = false }, signal) =>
      run("ensureImage", [], () => {
        signal?.throwIfAborted();
        const image = images.get(name);
        if (image === undefined) throw new Error(`there is no snapshot for image "${name}"`);
        const identity = { removed: !keepsIdentity, detail: keepsIdentity ? "it was kept as it is" : "" };
        images.set(name, { ...image, isKept: false });
        state.saveAll();
        return { gb: image.gb, bytes: Math.min(image.gb * GIB, image.content.length), identity };
      }),
    ensureRunning: (machine) =>
      run("ensureRunning", [machine.id], () => {
        const { id, owner, boot } = machine;
        for (const [other, leave] of bootSlots) {
          const power = running(other);
          const isOver = power === null || stageOf(power) === "ready";
          if (isOver && bootSlots.delete(other)) leave();
        }
        const isUp = (running(id)?.boot ?? 0) >= boot;
        if (isUp) queue.quit(id);
        if (isUp) resume(id);
        const slot = isUp ? null : queue.enter(id, owner);
        if (typeof slot !== "function") return slot;
        bootSlots.set(id, slot);
        start(machine);
        return null;
      }),
    ensureStopped: (id, how) =>
      run("ensureStopped", [id], () => {
        queue.quit(id);
        const deaf = how === "shutdown" && servers.get(id)?.deaf === true && running(id) !== null;
        if (!deaf) end(id, how === "cut" ? "order" : "guest");
        return !deaf;
      }),
    apply: (machine) =>
      run("apply", [machine.id], () => {
        const server = servers.get(machine.id);
        requireResponsive(machine.id);
        if (server !== undefined) writeLabel(server, machine);
        return changeServer(server, machine);
      }),
    listImages: () => run("listImages", [], () => [...images.values()].map(nameOf)),
    readImages: (names) => run("readImages", [], () => names.flatMap((name) => images.get(name) ?? []).map(showImage)),
    remove: (id) =>
      run("remove", [id], () => {
        queue.quit(id);
        end(id, "order");
        servers.delete(id);
      }),
    removeImage: (name) =>
      run("removeImage", [], () => {
        if (images.delete(name)) state.saveAll();
      }),
    holdDisks: (id) =>
      run("holdDisks", [id], () => {
        if (diskOf(id) === undefined) throw new Error(`server ${id} has no disk`);
        return null;
      }),
    releaseDisks: () => run("releaseDisks", [], () => {}),
    observe: (only) =>
      run("observe", [], async () => {
        const machines: MachineStatus[] = [];
        const observed = only === undefined ? servers.values() : only.flatMap((id) => servers.get(id) ?? []);
        await forEachInTurns(observed, (server) => void machines.push(showServer(server, now(), stageOf, free > 0)));
        const host = { ready: true, detail: "simulated", accelerator: null, capacity: { ...capacity, diskFree: free } };
        return { ...host, machines: machines.sort((a, b) => a.id - b.id) };
      }),
    onPower(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    readLog: (id, { previous = false, tail } = {}) =>
      run("readLog", [], () => {
        const text = servers.get(id)?.logs[previous ? 1 : 0];
        return text === undefined ? null : tail === undefined ? text : lastLines(text, tail);
      }),
    openSerial: (id) =>
      run("openSerial", [], () => {
        requireRunning(id);
        return createConsole("\r\nThis server is simulated.\r\nlogin: ", true);
      }),
    openVnc: (id) =>
      run("openVnc", [], () => {
        requireRunning(id);
        return createConsole("RFB 003.008\n", false);
      }),
    listOperatorImages: () => run("listOperatorImages", [], () => options.offered ?? []),
    ensureFetched: (name) => run("ensureFetched", [], () => name),
    ensureImported: () =>
      run("ensureImported", [], () => ({ refused: "Images cannot be imported: servers are simulated." })),
    checkOrigin: () => run("checkOrigin", [], () => null),
    close: () => locks.settle(),
    fail: (call, times = 1, when = "before", server) => void failures.set(call, { times, when, server }),
    delay: (call, milliseconds) => void waits.set(call, () => new Promise((done) => setTimeout(done, milliseconds))),
    hold(call) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waits.set(call, () => promise);
      return resolve;
    },
    kill: (id, reason = "died") => end(id, reason, "killed"),
    switchOff: (id) => end(id, "guest"),
    deafen(id, deaf) {
      const server = servers.get(id);
      if (server !== undefined) server.deaf = deaf;
      state.save([id]);
    },
    trouble(id, trouble) {
      const server = servers.get(id);
      if (server !== undefined) server.trouble = trouble;
      state.save([id]);
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
      state.save([id]);
    },
    write(id, text) {
      const disk = diskOf(id);
      if (disk !== undefined) disk.content = text;
      state.save([id]);
    },
    read: (id) => diskOf(id)?.content ?? null,
    images: () => [...images.values()].map(({ content, isKept }) => ({ content, isKept })),
  });
}
