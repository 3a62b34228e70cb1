/** One simulated server: what is kept of it, how it changes, how it shows, what it says. Pure but for the server that it is given. */
import { Duplex } from "node:stream";
import type {
  ApplyResult,
  ApplyResults,
  BootStage,
  Exit,
  Label,
  MachineSpec,
  MachineStatus,
  MachineTrouble,
  Nic,
  Usage,
} from "../interface.ts";

export interface Disk {
  readonly version: number;
  gb: number;
  content: string;
}

export interface Power {
  readonly boot: number;
  readonly version: number;
  readonly startedAt: number;
  readonly maxCpus: number;
  readonly maxMemory: number;
  /** What it was started with, and so cannot be taken from it. */
  readonly minCpus: number;
  /** Processors that were added stay. */
  readonly isEmulated: boolean;
  readonly minMemory: number;
  cpus: number;
  memory: number;
  share: number;
  nics: readonly number[];
  exit: Exit | null;
}

export interface Server {
  readonly id: number;
  label: Label | null;
  disks: Disk[];
  power: Power | null;
  logs: string[];
  deaf: boolean;
  /** Its process does not answer, or is paused. */
  trouble: MachineTrouble | null;
}

export interface Image {
  readonly name: string;
  readonly gb: number;
  readonly content: string;
  /** A snapshot: nothing can be made from it yet. */
  readonly isKept: boolean;
}

export const newServer = (id: number): Server => ({
  id,
  label: null,
  disks: [],
  power: null,
  logs: [],
  deaf: false,
  trouble: null,
});

const allSame = { cpus: "same", memory: "same", disk: "same", share: "same", nics: "same" } as const;

export const runningOf = (server: Server | undefined): Power | null => {
  const power = server?.power ?? null;
  return power === null || power.exit !== null ? null : power;
};

export function changeServer(server: Server | undefined, machine: MachineSpec): ApplyResults {
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

/** `hasRoom`: the disks of the machine have room for more. */
export function showServer(
  server: Server,
  now: number,
  stage: (power: Power) => BootStage,
  hasRoom: boolean,
): MachineStatus {
  const { id, label, power, disks } = server;
  const on = runningOf(server);
  const trouble = on === null ? null : server.trouble;
  const isSilent = trouble === "NotResponding";
  return {
    id,
    label,
    power: on === null ? "off" : trouble === null || isSilent ? "running" : "paused",
    trouble,
    canResume: trouble === "Paused" || (trouble === "IoError" && hasRoom),
    since: on?.startedAt ?? power?.exit?.at ?? null,
    exit: on === null ? (power?.exit ?? null) : null,
    boot: power?.boot ?? 0,
    version: on?.version ?? 0,
    cpus: isSilent ? 0 : (on?.cpus ?? 0),
    memory: isSilent ? 0 : (on?.memory ?? 0),
    reach: { cpus: on?.maxCpus ?? 0, memory: on?.maxMemory ?? 0 },
    stage: on === null ? null : stage(on),
    disks: disks.map(({ version, gb, content }) => ({ version, gb, allocated: content.length })),
    usage: on === null || isSilent ? null : usageOf(on, now),
    detail: trouble === null ? "" : `simulated: ${trouble}`,
  };
}

/** Says its word and then repeats what it is told, as a serial line does. */
export function talk(greeting: string, echo: boolean): Duplex {
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
