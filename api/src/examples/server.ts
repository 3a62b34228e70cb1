/** Server 17 and its actions, its copy 18, and group 4 with servers 19 and 20. */
import type { Action } from "../action.ts";
import type { Server, ServerLink } from "../server.ts";
import { laptop } from "./catalog.ts";
import { date, type Examples, later } from "./example.ts";

const link = (id: number, ip: string, mac: string, state: ServerLink["LinkState"] = "Active"): ServerLink => ({
  LinkID: id,
  NetworkID: 1,
  LinkState: state,
  NetworkType: "PublicShared",
  NetworkName: "Shared",
  IP: ip,
  MAC: `02:42:00:00:00:${mac}`,
  Mask: "255.255.0.0",
  Gateway: "10.63.0.1",
  Bandwidth: 100,
  IP6: "",
});

const server = (given: Partial<Server> = {}): Server => ({
  ID: 17,
  Name: "web-1",
  HostName: "web-1",
  State: "Active",
  IsPowerOn: true,
  CPU: 1,
  RAM: 512,
  HDD: 10,
  IP: given.LinkedNetworks?.[0]?.IP ?? "10.63.0.2",
  AdminUserName: "root",
  AdminPassword: "k7Rw2mQx9TzB4nLc",
  Image: "brume-tiny",
  IsHighPerformance: false,
  HDDType: "SSD",
  PrimaryNetworkIp: given.LinkedNetworks?.[0]?.IP ?? "10.63.0.2",
  LinkedNetworks: [link(31, "10.63.0.2", "1f")],
  DCLocation: "Local",
  ImageFamily: "Linux",
  LinkedSshKeys: [laptop],
  DateCreate: date,
  ImageID: 1,
  BatchID: null,
  IsProtected: false,
  Error: null,
  isBackupActive: false,
  BackupPeriod: 7,
  Condition: "Normal",
  Crashes: 0,
  Labels: { env: "prod" },
  ...given,
});

const made = (given: Partial<Server>): Server => server({ State: "New", IsPowerOn: false, ...given });
const node = (id: number, number: number, ip: string, mac: string, password: string): Server =>
  made({
    ID: id,
    Name: `node-${number}`,
    HostName: `node-${number}`,
    RAM: 256,
    HDD: 2,
    AdminPassword: password,
    LinkedNetworks: [link(33 + number, ip, mac, "New")],
    LinkedSshKeys: [],
    BatchID: 4,
    Labels: {},
  });

const step = (name: string, start: string | null, end: string | null, detail = ""): Action["Steps"][number] => ({
  Name: name,
  State: end !== null ? "Completed" : start !== null ? "InProgress" : "Pending",
  StartDate: start,
  EndDate: end,
  Detail: detail,
});
const creation: Action = {
  ID: 51,
  Type: "Create",
  State: "Completed",
  StartDate: date,
  EndDate: "2026-11-20T09:15:03.480Z",
  ServerID: 17,
  Progress: 100,
  Steps: [
    step("Reserve", date, date, "10.63.0.2 on network 1"),
    step("Disk", date, "2026-11-20T09:15:00.310Z", "10 GB from brume-tiny"),
    step("Network", "2026-11-20T09:15:00.310Z", "2026-11-20T09:15:00.350Z"),
    step("Boot", "2026-11-20T09:15:00.350Z", "2026-11-20T09:15:03.480Z", "power on"),
  ],
  Error: null,
};
const unanswered: Action = {
  ID: 56,
  Type: "ShutDownGuestOS",
  State: "Failed",
  StartDate: later,
  EndDate: "2026-11-20T09:22:11.010Z",
  ServerID: 17,
  Progress: 0,
  Steps: [
    {
      Name: "Shutdown",
      State: "Failed",
      StartDate: later,
      EndDate: "2026-11-20T09:22:11.010Z",
      Detail: "no reaction to the power button within 120 s",
    },
  ],
  Error: {
    type: "/docs#guest_did_not_respond",
    title: "The guest did not respond.",
    detail: "Server 17 did not answer the power button within 120 s. Send PowerOff, or ShutDownGuestOS with Force.",
    code: "guest_did_not_respond",
    step: "Shutdown",
    log: null,
  },
};
const plugging: Action = {
  ID: 55,
  Type: "AddNetwork",
  State: "InProgress",
  StartDate: later,
  EndDate: null,
  ServerID: 17,
  Progress: 50,
  Steps: [step("Reserve", later, later, "10.64.0.10 on network 5"), step("Plug", later, null)],
  Error: null,
};
const resizing: Action = {
  ID: 52,
  Type: "Resize",
  State: "InProgress",
  StartDate: later,
  EndDate: null,
  ServerID: 17,
  Progress: 0,
  Steps: [step("Cpu", null, null), step("Memory", null, null), step("Disk", null, null)],
  Error: null,
};

/** Examples of the operations on servers, actions and groups. */
export const serverExamples: Examples = {
  listServers: { answer: [server()] },
  createServer: {
    request: {
      Name: "web-1",
      CPU: 1,
      RAM: 512,
      HDD: 10,
      ImageID: "1",
      HDDType: "SSD",
      IsHighPerformance: false,
      DCLocation: "Local",
      SshKeys: [7],
      Labels: { env: "prod" },
    },
    answer: made({ LinkedNetworks: [link(31, "10.63.0.2", "1f", "New")] }),
  },
  readServer: { path: [17], answer: server() },
  updateServer: {
    path: [17],
    request: { CPU: 2, RAM: 1024, HDD: 20, HDDType: "SSD", IsHighPerformance: false },
    answer: resizing,
  },
  deleteServer: { path: [17] },
  copyServer: {
    path: [17],
    request: { Name: "web-2" },
    answer: made({
      ID: 18,
      Name: "web-2",
      HostName: "web-2",
      AdminPassword: "p4Yv8sKd3JhQ6wEz",
      LinkedNetworks: [link(33, "10.63.0.3", "21", "New")],
      DateCreate: later,
    }),
  },
  rebuildServer: {
    path: [17],
    request: { ImageId: "2" },
    answer: server({ AdminPassword: "Zt6mB1xV9cQr5uHa", Image: "debian-12", ImageID: 2 }),
  },
  startAction: { path: [17], request: { Type: "AddNetwork", NetworkID: 5 }, answer: plugging },
  listActions: { path: [17], answer: [unanswered, creation] },
  readAction: { path: [17, 51], answer: creation },
  cancelAction: {
    path: [17, 55],
    answer: {
      ...plugging,
      State: "Canceled",
      EndDate: "2026-11-20T09:20:12.450Z",
      Steps: plugging.Steps.map((one) => ({ ...one, State: "Undone", EndDate: "2026-11-20T09:20:12.450Z" })),
      Error: {
        type: "/docs#superseded",
        title: "The action was superseded by a later request.",
        detail: "It was canceled by token 1.",
        code: "superseded",
        step: "Plug",
        log: null,
      },
    },
  },
  createBatch: {
    request: { Name: "node-{n}", Count: 2, CPU: 1, RAM: 256, HDD: 2, ImageID: "1", Policy: "Atomic" },
    answer: {
      ID: 4,
      Policy: "Atomic",
      State: "New",
      Servers: [node(19, 1, "10.63.0.4", "22", "a1Sd4fGh7JkL0zXc"), node(20, 2, "10.63.0.5", "23", "v5Bn8mQw2ErT6yUi")],
      Errors: [],
    },
  },
  deleteBatch: { request: { ServerIDs: [19, 20] } },
  readServerLog: { path: [17], answer: "Brume tiny 1\nweb-1 login: \n" },
  openConsole: {
    path: [17],
    request: { Type: "Serial" },
    answer: {
      Url: "ws://127.0.0.1:8080/console/5f1c0e7a9b3d4c2e8f6a1b0c9d8e7f6a",
      ExpiresAt: "2026-11-20T09:16:00.120Z",
    },
  },
  readServerMetrics: {
    path: [17],
    answer: {
      Step: 60,
      Times: ["2026-11-20T09:18:00.000Z", "2026-11-20T09:19:00.000Z"],
      Series: {
        Cpu: [2.5, 1.9],
        MemoryUsed: [61, 61],
        DiskRead: [4096, 0],
        DiskWrite: [8192, 512],
        NetIn: [120, 98],
        NetOut: [64, 80],
      },
    },
  },
};

/** Examples of the operations on disk copies: server 17 in a backup of the whole installation. */
export const diskCopyExamples: Examples = {
  createDiskCopy: {
    request: { ServerID: 17 },
    answer: { ServerID: 17, Folder: "/var/lib/brume/servers/17.copy" },
  },
  deleteDiskCopies: {},
};
