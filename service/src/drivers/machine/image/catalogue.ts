/**
 * Official cloud images of distributions with their public addresses. Only the running service connects to these addresses, and only when a
 * user or the operator requests the image.
 */
import type { Family } from "../interface.ts";

/** One image of the catalogue. */
export interface CatalogueEntry {
  /** Name of the image after it is fetched. */
  readonly name: string;
  readonly title: string;
  readonly family: Family;
  readonly os: string;
  /** Minimum memory (MB) and disk (GB) of a server; the disk in the image may need more. */
  readonly minRam: number;
  readonly hdd: number;
  readonly url: string;
  /** Address of the checksum file, relative to `url`. */
  readonly sums: string;
  readonly hash: "sha256" | "sha512";
  readonly guest: "cloud-init";
}

const entry = (
  name: string,
  title: string,
  os: string,
  [minRam, hdd]: readonly [number, number],
  url: string,
  sums: string,
  hash: CatalogueEntry["hash"] = "sha256",
): CatalogueEntry => ({ name, title, family: "Linux", os, minRam, hdd, url, sums, hash, guest: "cloud-init" });

const debian = "https://cloud.debian.org/images/cloud";
const ubuntu = "https://cloud-images.ubuntu.com";
const alpine = "nocloud_alpine-3.22.2-x86_64-bios-cloudinit-r0.qcow2";
const fedora = "https://dl.fedoraproject.org/pub/fedora/linux/releases/44/Cloud/x86_64/images";

/** All images that can be fetched by name. */
export const catalogue: readonly CatalogueEntry[] = [
  entry(
    "debian-12",
    "Debian 12 (bookworm)",
    "Debian",
    [512, 3],
    `${debian}/bookworm/latest/debian-12-genericcloud-amd64.qcow2`,
    "SHA512SUMS",
    "sha512",
  ),
  entry(
    "debian-13",
    "Debian 13 (trixie)",
    "Debian",
    [512, 3],
    `${debian}/trixie/latest/debian-13-genericcloud-amd64.qcow2`,
    "SHA512SUMS",
    "sha512",
  ),
  entry(
    "ubuntu-22.04",
    "Ubuntu 22.04 LTS",
    "Ubuntu",
    [1024, 3],
    `${ubuntu}/jammy/current/jammy-server-cloudimg-amd64.img`,
    "SHA256SUMS",
  ),
  entry(
    "ubuntu-24.04",
    "Ubuntu 24.04 LTS",
    "Ubuntu",
    [1024, 4],
    `${ubuntu}/noble/current/noble-server-cloudimg-amd64.img`,
    "SHA256SUMS",
  ),
  entry(
    "almalinux-9",
    "AlmaLinux 9",
    "AlmaLinux",
    [1024, 10],
    "https://repo.almalinux.org/almalinux/9/cloud/x86_64/images/AlmaLinux-9-GenericCloud-latest.x86_64.qcow2",
    "CHECKSUM",
  ),
  entry(
    "rocky-9",
    "Rocky Linux 9",
    "Rocky Linux",
    [1024, 10],
    "https://dl.rockylinux.org/pub/rocky/9/images/x86_64/Rocky-9-GenericCloud.latest.x86_64.qcow2",
    "CHECKSUM",
  ),
  entry(
    "fedora-44",
    "Fedora 44 Cloud",
    "Fedora",
    [1024, 5],
    `${fedora}/Fedora-Cloud-Base-Generic-44-1.7.x86_64.qcow2`,
    "Fedora-Cloud-44-1.7-x86_64-CHECKSUM",
  ),
  entry(
    "alpine-3.22",
    "Alpine Linux 3.22",
    "Alpine",
    [256, 1],
    `https://dl-cdn.alpinelinux.org/alpine/v3.22/releases/cloud/${alpine}`,
    `${alpine}.sha512`,
    "sha512",
  ),
  entry(
    "arch",
    "Arch Linux",
    "Arch Linux",
    [512, 2],
    "https://geo.mirror.pkgbuild.com/images/latest/Arch-Linux-x86_64-cloudimg.qcow2",
    "Arch-Linux-x86_64-cloudimg.qcow2.SHA256",
  ),
];
