/**
 * The command line of one server: a pure text of its wish. All paths begin at the process's own folder, so the process needs to
 * reach nothing else. What is to be plugged in later (memory, cards, with KVM processors) needs its place from the start.
 */
import { initrdName, kernelName, layerName, variablesName } from "../disk/disk.ts";
import type { Boot } from "../image/manifest.ts";
import type { Accelerator, MachineSpec, Nic } from "../interface.ts";
import { guestOf, unheldOf } from "./name.ts";

export const firmware = "/usr/share/OVMF/OVMF_CODE_4M.fd";

/** Modules of memory that fit in between two starts. */
const memorySlots = 8;

/** Places for cards: all that are wished, and some. Sixteen at most, two functions of eight. */
export const placesFor = (machine: MachineSpec): number => Math.min(16, Math.max(8, machine.nics.length + 4));

/** A kernel that sees room for more memory sets 64 MB aside for devices that would not reach it. Ours is told that there are none. */
const worthIt = 512;

/** MB of translated code that an emulated machine keeps. */
export const codeCache = 64;

/** What the machine will be able to grow to. */
export function limitsFor({ machine, boot }: Pick<Start, "machine" | "boot">) {
  const { cpus, memory } = machine;
  return {
    cpus: Math.max(cpus, Math.min(64, Math.max(4, cpus * 2))),
    memory: boot === "kernel" || memory >= worthIt ? Math.max(2048, memory * 4) : memory,
  };
}

/** The node that a layer is in QEMU's graph. */
export const nodeOf = (layer: number): string => `disk${layer}`;
export const netdevOf = (nic: number): string => `n${nic}`;
export const nicOf = (nic: number): string => `nic${nic}`;
export const placeOf = (index: number): string => `rp${index}`;
/** The path of a layer from the process's folder. */
export const layerPath = (version: number, layer: number): string => `../disk-${version}/${layerName(layer)}`;

export interface Start {
  readonly tag: string;
  readonly machine: MachineSpec;
  readonly boot: Boot;
  /** The layer in force. */
  readonly layer: number;
  readonly accelerator: Accelerator;
}

/** Values of options double their commas. */
const value = (text: string): string => text.replaceAll(",", ",,");

/** An option with its values. */
type Option = readonly string[];

function bootOptions({ boot, machine }: Start): readonly Option[] {
  const disk = `../disk-${machine.disk.version}`;
  if (boot === "kernel")
    return [
      ["-kernel", `${disk}/${kernelName}`],
      ["-initrd", `${disk}/${initrdName}`],
      ["-append", "console=ttyS0 quiet panic=10 net.ifnames=0 swiotlb=noforce"],
    ];
  if (boot === "disk") return [];
  return [
    ["-drive", `if=pflash,format=raw,unit=0,readonly=on,file=${firmware}`],
    ["-drive", `if=pflash,format=raw,unit=1,file=${disk}/${variablesName}`],
  ];
}

/** Devices on the root bus cannot be taken away again, hence a port for each card, also for those that are there from the start. */
const placeOptions = (count: number): readonly Option[] =>
  Array.from({ length: count }, (_, index) => {
    const address = `0x${(0x10 + (index >> 3)).toString(16)}.${index & 7}`;
    const first = (index & 7) === 0 ? ",multifunction=on" : "";
    const slot = index + 1;
    const place = `id=${placeOf(index)},bus=pcie.0,chassis=${slot},slot=${slot},addr=${address}${first}`;
    return ["-device", `pcie-root-port,${place}`];
  });

const nicOptions = (tag: string, { id, mac }: Nic, index: number): readonly Option[] => [
  ["-netdev", `tap,id=${netdevOf(id)},ifname=${value(unheldOf(tag, id))},script=no,downscript=no`],
  ["-device", `virtio-net-pci,netdev=${netdevOf(id)},id=${nicOf(id)},mac=${value(mac)},bus=${placeOf(index)}`],
];

/** Of a program that is started in the `run/` of the server's folder. It stands still until it is told to go on. */
export function qemuArguments(start: Start): readonly string[] {
  const { tag, machine, layer, accelerator } = start;
  const { id, uuid, cpus, memory, disk, nics } = machine;
  const limits = limitsFor(start);
  const room = limits.memory > memory ? `,slots=${memorySlots},maxmem=${limits.memory}M` : "";
  const server = (name: string, extra = "") => `socket,id=${name},path=${name},server=on,wait=off${extra}`;
  const root = `driver=qcow2,node-name=${nodeOf(layer)},discard=unmap,file.driver=file`;
  const options: readonly Option[] = [
    ["-name", `guest=${value(guestOf(tag, id))}`],
    ["-uuid", value(uuid)],
    ["-nodefaults"],
    ["-no-user-config"],
    ["-display", "none"],
    ["-S"],
    ["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"],
    ["-machine", "q35"],
    ["-accel", accelerator === "kvm" ? "kvm" : `tcg,thread=multi,tb-size=${codeCache}`],
    ["-cpu", accelerator === "kvm" ? "host" : "max"],
    ["-m", `${memory}${room}`],
    ["-smp", `${cpus},maxcpus=${limits.cpus}`],
    ["-rtc", "base=utc"],
    // A guest that switches itself off leaves the process waiting, so that also a service that was away learns of it.
    ["-action", "shutdown=pause"],
    ...bootOptions(start),
    ["-device", "VGA,bus=pcie.0,addr=0x2"],
    ["-vnc", "unix:vnc"],
    ["-blockdev", `${root},file.filename=${layerPath(disk.version, layer)}`],
    // The lowest address is /dev/vda; boot index 0 is taken by -kernel.
    ["-device", `virtio-blk-pci,drive=${nodeOf(layer)},id=root,serial=root,bus=pcie.0,addr=0x3,bootindex=1`],
    ["-blockdev", "driver=raw,node-name=seed,read-only=on,file.driver=file,file.filename=../seed.img"],
    ["-device", "virtio-blk-pci,drive=seed,id=seed,serial=seed,bus=pcie.0,addr=0x4"],
    ["-device", "virtio-rng-pci,bus=pcie.0,addr=0x5"],
    ["-device", "virtio-balloon-pci,id=balloon,bus=pcie.0,addr=0x6"],
    ["-device", "virtio-serial-pci,bus=pcie.0,addr=0x7"],
    ["-chardev", server("agent")],
    ["-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"],
    ...placeOptions(placesFor(machine)),
    ...nics.flatMap((nic, index) => nicOptions(tag, nic, index)),
    ["-chardev", server("serial", ",logfile=console.log,logappend=on")],
    ["-serial", "chardev:serial"],
    ["-chardev", server("qmp")],
    ["-mon", "chardev=qmp,mode=control"],
    // For people, since ours is taken.
    ["-chardev", server("qmp-debug")],
    ["-mon", "chardev=qmp-debug,mode=control"],
  ];
  return ["qemu-system-x86_64", ...options.flat()];
}

/** In the folder of the process; left behind by one that was killed. */
export const socketNames: readonly string[] = ["agent", "serial", "qmp", "qmp-debug", "vnc"];
