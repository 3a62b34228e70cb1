/**
 * Builds the QEMU command line from the spec of a server; pure. All paths are relative to the `run/` folder of the process, so it needs
 * access to nothing else. Memory, NICs and (with KVM) vCPUs that are hot-plugged later need reserved slots from the start.
 */
import { initrdName, kernelName, layerName, variablesName } from "../disk/disk.ts";
import type { Boot } from "../image/manifest.ts";
import type { Accelerator, MachineSpec, Nic } from "../interface.ts";
import { guestOf, pendingTapOf } from "./name.ts";

/** UEFI firmware of the host. */
export const firmware = "/usr/share/OVMF/OVMF_CODE_4M.fd";

/** Maximum number of memory modules that can be hot-plugged between two starts. */
const memorySlots = 8;

/** Returns the number of PCIe ports for NICs: those of the spec and 4 spare, 8 to 16. Two PCI slots with 8 functions each hold 16. */
export const portsFor = (machine: MachineSpec): number => Math.min(16, Math.max(8, machine.nics.length + 4));

/**
 * MB of memory below which hot-plug is not offered. A kernel that sees empty slots reserves 64 MB for devices with narrow addresses.
 * Kernels that we boot directly get `swiotlb=noforce` and reserve nothing.
 */
const minHotplugMemory = 512;

/** MB for translated code of an emulated VM. */
export const codeCache = 64;

/** Returns the vCPUs and memory (MB) that the VM can grow to without a restart. */
export function limitsFor({ machine, boot }: Pick<Start, "machine" | "boot">) {
  const { cpus, memory } = machine;
  return {
    cpus: Math.max(cpus, Math.min(64, Math.max(4, cpus * 2))),
    memory: boot === "kernel" || memory >= minHotplugMemory ? Math.max(2048, memory * 4) : memory,
  };
}

/** Returns the name of a layer in QEMU's block graph. */
export const nodeOf = (layer: number): string => `disk${layer}`;
/** Returns the QEMU id of a NIC's network backend. */
export const netdevOf = (nic: number): string => `n${nic}`;
/** Returns the QEMU id of a NIC. */
export const nicOf = (nic: number): string => `nic${nic}`;
/** Returns the QEMU id of a PCIe port. */
export const portOf = (index: number): string => `rp${index}`;
/** Returns the path of a layer, relative to the folder of the process. */
export const layerPath = (version: number, layer: number): string => `../disk-${version}/${layerName(layer)}`;

/** Input of `qemuArguments`. */
export interface Start {
  readonly tag: string;
  readonly machine: MachineSpec;
  readonly boot: Boot;
  /** Number of the writable layer. */
  readonly layer: number;
  readonly accelerator: Accelerator;
}

/** Escapes a value: commas are doubled. */
const value = (text: string): string => text.replaceAll(",", ",,");

/** An option and its values. */
type Option = readonly string[];

function bootOptions({ boot, machine }: Start): readonly Option[] {
  const disk = `../disk-${machine.disk.version}`;
  // Without `no_timer_check`, an emulated guest on a busy host can panic: "IO-APIC + timer doesn't work". The self-tests of the kernel's
  // ciphers, which `cryptomgr.notests` omits, take a fifth of an emulated boot.
  if (boot === "kernel")
    return [
      ["-kernel", `${disk}/${kernelName}`],
      ["-initrd", `${disk}/${initrdName}`],
      ["-append", "console=ttyS0 quiet no_timer_check cryptomgr.notests panic=10 net.ifnames=0 swiotlb=noforce"],
    ];
  if (boot === "disk") return [];
  return [
    ["-drive", `if=pflash,format=raw,unit=0,readonly=on,file=${firmware}`],
    ["-drive", `if=pflash,format=raw,unit=1,file=${disk}/${variablesName}`],
  ];
}

/** Returns PCIe ports for all NICs: devices on the root bus cannot be unplugged. */
const portOptions = (count: number): readonly Option[] =>
  Array.from({ length: count }, (_, index) => {
    const address = `0x${(0x10 + (index >> 3)).toString(16)}.${index & 7}`;
    const first = (index & 7) === 0 ? ",multifunction=on" : "";
    const slot = index + 1;
    const port = `id=${portOf(index)},bus=pcie.0,chassis=${slot},slot=${slot},addr=${address}${first}`;
    return ["-device", `pcie-root-port,${port}`];
  });

const nicOptions = (tag: string, { id, mac }: Nic, index: number): readonly Option[] => [
  ["-netdev", `tap,id=${netdevOf(id)},ifname=${value(pendingTapOf(tag, id))},script=no,downscript=no`],
  ["-device", `virtio-net-pci,netdev=${netdevOf(id)},id=${nicOf(id)},mac=${value(mac)},bus=${portOf(index)}`],
];

/** Returns the command line of a VM, for a process started in the server's `run/` folder. The VM waits for `cont`. */
export function qemuArguments(start: Start): readonly string[] {
  const { tag, machine, layer, accelerator } = start;
  const { id, uuid, cpus, memory, disk, nics } = machine;
  const limits = limitsFor(start);
  const hotplug = limits.memory > memory ? `,slots=${memorySlots},maxmem=${limits.memory}M` : "";
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
    ["-m", `${memory}${hotplug}`],
    ["-smp", `${cpus},maxcpus=${limits.cpus}`],
    ["-rtc", "base=utc"],
    // After a guest shutdown the process stays, so that a service that was not running finds out.
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
    ...portOptions(portsFor(machine)),
    ...nics.flatMap((nic, index) => nicOptions(tag, nic, index)),
    ["-chardev", server("serial", ",logfile=console.log,logappend=on")],
    ["-serial", "chardev:serial"],
    ["-chardev", server("qmp")],
    ["-mon", "chardev=qmp,mode=control"],
    // For operators: the service occupies the other monitor.
    ["-chardev", server("qmp-debug")],
    ["-mon", "chardev=qmp-debug,mode=control"],
  ];
  return ["qemu-system-x86_64", ...options.flat()];
}

/** Names of the sockets in the folder of the process. A killed process leaves them behind. */
export const socketNames: readonly string[] = ["agent", "serial", "qmp", "qmp-debug", "vnc"];
