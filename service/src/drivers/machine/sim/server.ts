/** The state of one simulated server, and its changes, status and console. Functions here change only the server that they get. */
import { Duplex } from "node:stream";
import type {
  ApplyResult,
  ApplyResults,
  BootStage,
  Exit,
  HeldImage,
  HeldName,
  Label,
  MachineSpec,
  MachineStatus,
  MachineTrouble,
  Nic,
  Usage,
} from "../interface.ts";

/** One disk version; `content` is a text that tests write. */
export interface Disk {
  readonly version: number;
  gb: number;
  content: string;
}

/** The current or last run. */
export interface Power {
  readonly boot: number;
  readonly version: number;
  readonly startedAt: number;
  readonly maxCpus: number;
  readonly maxMemory: number;
  /** Size at the start, below which it cannot shrink. */
  readonly minCpus: number;
  /** vCPUs cannot be unplugged under emulation. */
  readonly isEmulated: boolean;
  readonly minMemory: number;
  cpus: number;
  memory: number;
  share: number;
  nics: readonly number[];
  exit: Exit | null;
}

/** A server as it is stored: these names are keys in the file (see state.ts). */
export interface SimulatedServer {
  readonly id: number;
  label: Label | null;
  disks: Disk[];
  power: Power | null;
  logs: string[];
  /** The guest ignores its power button and unplug requests. */
  deaf: boolean;
  /** A problem that a test has set. */
  trouble: MachineTrouble | null;
}

/** An image or a snapshot, as it is stored. */
export interface SimulatedImage {
  readonly name: string;
  readonly gb: number;
  readonly content: string;
  /** True for a snapshot, from which no disk can be created yet. */
  readonly isKept: boolean;
}

/** Returns what identifies the image. */
export const nameOf = ({ name, isKept }: SimulatedImage): HeldName => ({ name, kind: isKept ? "snapshot" : "image" });

/** Returns the image as the driver shows it. */
export const showImage = (image: SimulatedImage): HeldImage => {
  const { name: title, gb, content } = image;
  return { ...nameOf(image), title, family: "Linux", minRam: 128, gb, bytes: content.length };
};

/** Returns a server without disks. */
export const newServer = (id: number): SimulatedServer => ({
  id,
  label: null,
  disks: [],
  power: null,
  logs: [],
  deaf: false,
  trouble: null,
});

const allSame = { cpus: "same", memory: "same", disk: "same", share: "same", nics: "same" } as const;

/** Returns the current run, or null while the server is off. */
export const runningOf = (server: SimulatedServer | undefined): Power | null => {
  const power = server?.power ?? null;
  return power === null || power.exit !== null ? null : power;
};

/** Applies a spec to a server, like `Machines.apply`. */
export function changeServer(server: SimulatedServer | undefined, machine: MachineSpec): ApplyResults {
  const { cpus, memory, share, disk, nics } = machine;
  const target = server?.disks.find((one) => one.version === disk.version);
  const grows = target !== undefined && target.gb < disk.gb;
  if (grows) target.gb = disk.gb;
  const diskChange: ApplyResult = grows ? "live" : "same";
  const power = runningOf(server);
  if (power === null) return { ...allSame, disk: diskChange };
  const isDeaf = server?.deaf === true;
  const resize = (key: "cpus" | "memory", wanted: number, least: number, most: number): ApplyResult => {
    if (wanted === power[key]) return "same";
    const isWithin = wanted >= least && wanted <= most && (wanted - power[key]) % (key === "memory" ? 128 : 1) === 0;
    if (!isWithin || (wanted < power[key] && isDeaf)) return "nextStart";
    power[key] = wanted;
    return "live";
  };
  const plug = (wanted: readonly Nic[]): ApplyResult => {
    const ids = wanted.map((nic) => nic.id);
    const leaving = power.nics.filter((nic) => !ids.includes(nic));
    const coming = ids.filter((nic) => !power.nics.includes(nic));
    const stuck = isDeaf ? leaving : [];
    power.nics = [...power.nics.filter((nic) => ids.includes(nic) || stuck.includes(nic)), ...coming];
    return stuck.length > 0 ? "nextStart" : leaving.length + coming.length > 0 ? "live" : "same";
  };
  const shareChange: ApplyResult = power.share === share ? "same" : "live";
  power.share = share;
  return {
    cpus: resize("cpus", cpus, power.isEmulated ? power.cpus : power.minCpus, power.maxCpus),
    memory: resize("memory", memory, power.minMemory, power.maxMemory),
    disk: diskChange,
    share: shareChange,
    nics: plug(nics),
  };
}

const usageOf = (on: Power, now: number): Usage => ({
  cpuTime: Math.floor((now - on.startedAt) / 10),
  memory: Math.floor(on.memory / 4),
  resident: on.memory,
  diskRead: 0,
  diskWritten: 0,
});

/** Returns the status of a server. `hasSpace`: the host has free disk space. */
export function showServer(
  server: SimulatedServer,
  now: number,
  stage: (power: Power) => BootStage,
  hasSpace: boolean,
): MachineStatus {
  const { id, label, power, disks } = server;
  const on = runningOf(server);
  const trouble = on === null ? null : server.trouble;
  const isUnresponsive = trouble === "NotResponding";
  return {
    id,
    label,
    power: on === null ? "off" : trouble === null || isUnresponsive ? "running" : "paused",
    trouble,
    canResume: trouble === "Paused" || (trouble === "IoError" && hasSpace),
    since: on?.startedAt ?? power?.exit?.at ?? null,
    exit: on === null ? (power?.exit ?? null) : null,
    boot: power?.boot ?? 0,
    version: on?.version ?? 0,
    cpus: isUnresponsive ? 0 : (on?.cpus ?? 0),
    memory: isUnresponsive ? 0 : (on?.memory ?? 0),
    reach: { cpus: on?.maxCpus ?? 0, memory: on?.maxMemory ?? 0 },
    stage: on === null ? null : stage(on),
    disks: disks.map(({ version, gb, content }) => ({ version, gb, allocated: content.length })),
    usage: on === null || isUnresponsive ? null : usageOf(on, now),
    detail: trouble === null ? "" : `simulated: ${trouble}`,
  };
}

/** Returns a stream that sends a greeting and, with `echo`, repeats its input like a serial console. */
export function createConsole(greeting: string, echo: boolean): Duplex {
  const stream = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      if (echo) stream.push(chunk.toString().replaceAll("\r", "\r\nlogin: "));
      done();
    },
  });
  stream.push(greeting);
  return stream;
}
