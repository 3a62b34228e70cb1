/** Image 1 of the operator, image 9, created from a server, and SSH key 7. */
import type { Image, SshKey } from "../catalog.ts";
import { date, type Examples, later } from "./example.ts";

/** SSH key 7. */
export const laptop: SshKey = {
  ID: 7,
  Title: "laptop",
  PublicKey: "AAAAC3NzaC1lZDI1NTE5AAAAIE3p6k3o0o3p0l7mYw2bq1Xn4rZ8t5v9cQ1sD2fG3hJ4",
  IsActive: true,
  Type: "ssh-ed25519",
  Comment: "ann@laptop",
  Fingerprint: "SHA256:VuHrq6jTQnl9j+L3P2O5jpsrgwlEQgqP3g/sycoSk10",
  DateCreate: date,
  Labels: {},
};

const tiny: Image = {
  ID: 1,
  Name: "brume-tiny",
  DisplayName: "Brume Tiny Linux",
  DCLocation: null,
  Hdd: 1,
  Family: "Linux",
  IsAvailableISP: false,
  IsISPLiteEnabled: false,
  IsISPBusinessEnabled: false,
  Type: "GoldServer",
  LinkedSshKeys: [],
  OperatingSystemType: "Linux",
  TechName: "brume-tiny",
  State: "Active",
  MinRAM: 128,
  DateCreate: date,
  Error: null,
  ServerID: null,
  Progress: 100,
  Identity: null,
  Upload: null,
  Labels: {},
};

/** Examples of the operations on images, SSH keys and locations. */
export const catalogExamples: Examples = {
  createImage: {
    request: { Name: "Web base", TechName: "web-base", ServerID: 17 },
    answer: {
      ...tiny,
      ID: 9,
      Name: "Web base",
      DisplayName: "Web base",
      DCLocation: "Local",
      Hdd: 10,
      Type: "Client",
      TechName: "web-base",
      State: "New",
      DateCreate: later,
      ServerID: 17,
      Progress: 0,
    },
  },
  writeImageContent: {
    path: [10],
    answer: {
      ...tiny,
      ID: 10,
      Name: "golden",
      DisplayName: "golden",
      Type: "Client",
      TechName: "golden",
      State: "Uploading",
      DateCreate: later,
      Progress: 33,
      Upload: { Size: 3_145_728, Received: 1_048_576, Sha256: null, Expires: "2026-11-21T09:20:11.007Z" },
    },
  },
  deleteImage: { path: [9] },
  listImages: { answer: [tiny] },
  readImage: { path: [1], answer: tiny },
  listLocations: {
    answer: [
      {
        ID: 1,
        Title: "Local",
        TechTitle: "Local",
        ShortTitle: "Local",
        Country: "",
        City: "",
        IsEnableLowPool: true,
        IsEnableHighPool: true,
        IsEnableBackup: true,
        IsEnableIpV6: false,
        IsOnlyForAdmins: false,
        HiddenToNewProjects: false,
        IsFirewallEnabled: true,
        Engines: { Machine: "host", Router: "host", NameServer: "builtin" },
        Capacity: { CPU: 16, RAM: 23_552, HDD: 400, FreeCPU: 15, FreeRAM: 23_040, FreeHDD: 390 },
      },
    ],
  },
  listSshKeys: { answer: [laptop] },
  createSshKey: {
    request: { Title: "laptop", PublicKey: `ssh-ed25519 ${laptop.PublicKey} ann@laptop` },
    answer: laptop,
  },
  readSshKey: { path: [7], answer: laptop },
  deleteSshKey: { path: [7] },
};
