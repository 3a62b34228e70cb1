import assert from "node:assert/strict";
import { test } from "node:test";
import type { MachineSpec, Nic } from "../interface.ts";
import { limitsFor, portsFor, qemuArguments, type Start } from "./arguments.ts";

const nic = (id: number): Nic => ({ id, mac: `02:42:00:00:00:${String(id).padStart(2, "0")}` });
const machine: MachineSpec = {
  id: 42,
  uuid: "4dbf0a38-9a2a-4a7c-8a5c-1a6f0c3c1e2d",
  owner: 1,
  boot: 3,
  cpus: 2,
  memory: 512,
  share: 1,
  disk: { version: 2, gb: 10 },
  nics: [nic(9), nic(40)],
  seed: [],
};
const start: Start = { tag: "q1z", machine, boot: "kernel", layer: 1, accelerator: "tcg" };
/** One option and its value per line. */
const text = (spec: Partial<Start> = {}) =>
  qemuArguments({ ...start, ...spec })
    .join(" ")
    .replaceAll(/ (?=-[a-zA-Z])/g, "\n");

test("the complete command line of an emulated Tiny Linux", () => {
  const places = Array.from({ length: 8 }, (_, index) => {
    const first = index === 0 ? ",multifunction=on" : "";
    return `-device pcie-root-port,id=rp${index},bus=pcie.0,chassis=${index + 1},slot=${index + 1},addr=0x10.${index}${first}`;
  });
  const expected = [
    "qemu-system-x86_64",
    "-name guest=brume-q1z-42",
    "-uuid 4dbf0a38-9a2a-4a7c-8a5c-1a6f0c3c1e2d",
    "-nodefaults",
    "-no-user-config",
    "-display none",
    "-S",
    "-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
    "-machine q35",
    "-accel tcg,thread=multi,tb-size=64",
    "-cpu max",
    "-m 512,slots=8,maxmem=2048M",
    "-smp 2,maxcpus=4",
    "-rtc base=utc",
    "-action shutdown=pause",
    "-kernel ../disk-2/vmlinuz",
    "-initrd ../disk-2/initrd.gz",
    "-append console=ttyS0 quiet no_timer_check cryptomgr.notests panic=10 net.ifnames=0 swiotlb=noforce",
    "-device VGA,bus=pcie.0,addr=0x2",
    "-vnc unix:vnc",
    "-blockdev driver=qcow2,node-name=disk1,discard=unmap,file.driver=file,file.filename=../disk-2/1.qcow2",
    "-device virtio-blk-pci,drive=disk1,id=root,serial=root,bus=pcie.0,addr=0x3,bootindex=1",
    "-blockdev driver=raw,node-name=seed,read-only=on,file.driver=file,file.filename=../seed.img",
    "-device virtio-blk-pci,drive=seed,id=seed,serial=seed,bus=pcie.0,addr=0x4",
    "-device virtio-rng-pci,bus=pcie.0,addr=0x5",
    "-device virtio-balloon-pci,id=balloon,bus=pcie.0,addr=0x6",
    "-device virtio-serial-pci,bus=pcie.0,addr=0x7",
    "-chardev socket,id=agent,path=agent,server=on,wait=off",
    "-device virtserialport,chardev=agent,name=org.qemu.guest_agent.0",
    ...places,
    "-netdev tap,id=n9,ifname=bq1zx9,script=no,downscript=no",
    "-device virtio-net-pci,netdev=n9,id=nic9,mac=02:42:00:00:00:09,bus=rp0",
    "-netdev tap,id=n40,ifname=bq1zx14,script=no,downscript=no",
    "-device virtio-net-pci,netdev=n40,id=nic40,mac=02:42:00:00:00:40,bus=rp1",
    "-chardev socket,id=serial,path=serial,server=on,wait=off,logfile=console.log,logappend=on",
    "-serial chardev:serial",
    "-chardev socket,id=qmp,path=qmp,server=on,wait=off",
    "-mon chardev=qmp,mode=control",
    "-chardev socket,id=qmp-debug,path=qmp-debug,server=on,wait=off",
    "-mon chardev=qmp-debug,mode=control",
  ];
  assert.deepEqual(text().split("\n"), expected);
});

test("reserves slots for more vCPUs and memory, up to a limit", () => {
  assert.match(text({ accelerator: "kvm" }), /^-accel kvm\n-cpu host\n-m 512,slots=8,maxmem=2048M\n-smp 2,maxcpus=4$/m);
  const big = { ...start, machine: { ...machine, cpus: 64, memory: 4096 } };
  assert.deepEqual(limitsFor(big), { cpus: 64, memory: 16_384 });
});

test("boot options of each boot method", () => {
  assert.doesNotMatch(text({ boot: "disk" }), /-kernel|pflash/);
  const uefi = text({ boot: "uefi" });
  assert.match(uefi, /^-drive if=pflash,format=raw,unit=0,readonly=on,file=\/usr\/share\/OVMF\/OVMF_CODE_4M.fd$/m);
  assert.match(uefi, /^-drive if=pflash,format=raw,unit=1,file=\.\.\/disk-2\/variables.fd$/m);
});

test("a small server that boots its own kernel gets no memory slots", () => {
  const small = { ...machine, memory: 256 };
  assert.match(text({ machine: small, boot: "disk" }), /^-m 256\n/m);
  assert.match(text({ machine: small, boot: "kernel" }), /^-m 256,slots=8,maxmem=2048M\n/m);
  assert.match(text({ machine: { ...machine, memory: 512 }, boot: "disk" }), /^-m 512,slots=8,maxmem=2048M\n/m);
});

test("each of many NICs has its own port", () => {
  const nics = Array.from({ length: 12 }, (_, index) => nic(index + 1));
  const many = text({ machine: { ...machine, nics } });
  assert.equal(portsFor({ ...machine, nics }), 16);
  const buses = [...many.matchAll(/bus=(rp\d+)/g)].map(([, bus]) => bus);
  assert.equal(new Set(buses).size, 12);
  assert.match(many, /id=rp8,bus=pcie.0,chassis=9,slot=9,addr=0x11.0,multifunction=on/);
});

test("escapes a comma in a value", () => {
  const spec = { ...machine, nics: [{ ...nic(1), mac: "02:00,bus=rp7" }] };
  assert.match(text({ machine: spec }), /mac=02:00,,bus=rp7,bus=rp0$/m);
});
