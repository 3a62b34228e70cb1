/**
 * What the service needs of the host that runs servers, as three interfaces: `Machines` (life cycle and observation), `Images` (where
 * disks come from) and `Consoles` (what a guest prints and shows). A driver implements all three; each feature takes what it uses.
 * Arguments and results are plain data: structured values without functions, so that a driver on another host can take each call as one
 * request. A `signal` ends the request, a `progress` function gets what the request reports before its result. What does not end with a
 * result is a stream: events (`on…`) and consoles (`open…`). Every call may be repeated after any failure or kill: it looks first and does
 * what is missing. Calls on one server wait for each other. One `Machine` is the whole desired state of one server; a driver knows nothing
 * of projects, prices or the API. Times are milliseconds since 1970, memory MB (2^20 bytes), disks GB (2^30 bytes), everything else bytes.
 */

/** A network card. The other end is a device of the host: `Machines.deviceOf`. */
export interface Nic {
  /** Unique in the installation, as the card's port in the network is. */
  readonly id: number;
  readonly mac: string;
}

/** Read by the guest at its first boot: a file of the volume labelled CIDATA. */
export interface SeedFile {
  readonly name: string;
  readonly content: string | Uint8Array;
}

export interface MachineSpec {
  /** Unique in the installation. */
  readonly id: number;
  readonly uuid: string;
  /** As its owner calls it, for people who find its disk without the database. */
  readonly name?: string;
  /** When more want to start than the machine can take, owners take turns, whoever they are. */
  readonly owner: number;
  /**
   * Grows by one with every start or reset that somebody wants. What runs as an older boot is cut and started anew, what runs as
   * this one goes on: so an order to reset is carried out once, however often it is given.
   */
  readonly boot: number;
  readonly cpus: number;
  readonly memory: number;
  /** Of the processor, against other servers, when cores are scarce: 1, or 2 for high performance. */
  readonly share: number;
  readonly disk: {
    /** Grows by one with every rebuild. Disks of several versions stand side by side; the server starts from this one. */
    readonly version: number;
    /** Only ever grows within a version. */
    readonly gb: number;
  };
  /** The guest numbers its cards in this order, those plugged in later at the end. */
  readonly nics: readonly Nic[];
  /** Written at each start; a new instance id in it makes a new server of the guest. */
  readonly seed: readonly SeedFile[];
}

/**
 * Where a disk's content comes from: an image by its folder's name, or the disk of another server as it is at this moment (on: as
 * after a power cut, files flushed where the guest can). Either way nothing is copied but what is written later.
 */
export type DiskSource = { readonly image: string } | { readonly server: number };

/** `same`: it is as wished; `live`: it was changed now; `nextStart`: it needs a start. */
export type ApplyResult = "same" | "live" | "nextStart";

export interface ApplyResults {
  readonly cpus: ApplyResult;
  readonly memory: ApplyResult;
  /** A stopped server's disk grows `live` too. */
  readonly disk: ApplyResult;
  readonly share: ApplyResult;
  readonly nics: ApplyResult;
}

/**
 * `order`: we cut it; `guest`: it switched itself off, asked or not; `host`: the whole machine went down or was started anew; `died`:
 * none of these, and `detail` has the process's last words.
 */
export interface Exit {
  readonly reason: "order" | "guest" | "host" | "died";
  readonly at: number;
  readonly detail: string;
}

/**
 * How far a guest is, as its serial line tells: nothing yet, a prompt for a login, or the report that its first boot has ended, which
 * only images give that know of it.
 */
export type BootStage = "starting" | "login" | "ready";

export interface DiskStatus {
  readonly version: number;
  readonly gb: number;
  /** What only this server holds on the machine's own disks. */
  readonly allocated: number;
}

/** Counted since the start, but `memory`, which is now. */
export interface Usage {
  /** Milliseconds of one core. */
  readonly cpuTime: number;
  /** MB in use as the guest itself says; null where it does not. */
  readonly memory: number | null;
  /** MB that the process holds of the machine. */
  readonly resident: number;
  readonly diskRead: number;
  readonly diskWritten: number;
}

/** Kept beside a server's disks, so that whoever finds them without the database knows what they are. */
export interface Label {
  /** Of the server that the folder belongs to; "" where only an older release wrote there. */
  readonly uuid: string;
  readonly name: string;
  readonly cpus: number;
  readonly memory: number;
  /** Folder of the image that its disk was made from, if that is known. */
  readonly image: string;
}

/**
 * `NotResponding`: its process has not answered for ten seconds; `IoError`: QEMU has paused it, since its disk cannot be written;
 * `Paused`: it is paused for another reason.
 */
export type MachineTrouble = "NotResponding" | "IoError" | "Paused";

/** Network traffic is not here: devices are in the router's hands, and its `PortStatus` counts them. */
export interface MachineStatus {
  readonly id: number;
  /** Null: nothing is known of it but its number. */
  readonly label: Label | null;
  /** `paused` is nobody's wish: the disks of the machine are full or broken, or somebody was at the second monitor. */
  readonly power: "off" | "running" | "paused";
  readonly trouble: MachineTrouble | null;
  /** It is paused, and there is nothing in the way of going on: its disk can grow again. */
  readonly canResume: boolean;
  /** Since when; null: it never ran. */
  readonly since: number | null;
  /** How its last run ended; null while it runs, and before the first. */
  readonly exit: Exit | null;
  /** Of the present or last run; 0: none. */
  readonly boot: number;
  /** Disk version of the present run; 0 while off. */
  readonly version: number;
  /** As it runs; 0 while off. */
  readonly cpus: number;
  readonly memory: number;
  /** The most that `apply` would reach without a start; 0 while off. */
  readonly reach: { readonly cpus: number; readonly memory: number };
  readonly stage: BootStage | null;
  readonly disks: readonly DiskStatus[];
  /** Null while off, or when it does not answer in time. */
  readonly usage: Usage | null;
  /** A word for people: why it is paused, or what is odd about it; else "". */
  readonly detail: string;
}

export interface Capacity {
  readonly cores: number;
  readonly memory: number;
  /** Of the disks that hold servers, in GB. */
  readonly disk: number;
  readonly diskFree: number;
}

export type Accelerator = "kvm" | "tcg";

export interface MachinesStatus {
  readonly ready: boolean;
  readonly detail: string;
  /** Null: servers are simulated. */
  readonly accelerator: Accelerator | null;
  readonly capacity: Capacity;
  /**
   * Also those that nobody named to this driver since it started, by whatever is left of them (folder, process, device): what no
   * row owns goes away with `remove`.
   */
  readonly machines: readonly MachineStatus[];
}

/** One answer of the trials at start; `works: false` says in words what that costs. */
export interface Probe {
  readonly name: string;
  readonly works: boolean;
  readonly detail: string;
}

/** A server's power has changed, by whatever means: `exit` is null when it was started. */
export interface PowerEvent {
  readonly id: number;
  readonly boot: number;
  readonly exit: Exit | null;
}

/** Bytes both ways; `end` and `destroy` leave the server alone. */
export interface Stream extends NodeJS.ReadWriteStream {
  destroy(error?: Error): void;
}

export interface ReadLogOptions {
  /** The start before. */
  readonly previous?: boolean;
  /** Last lines only. */
  readonly tail?: number;
}

/** Life cycle and observation of servers. */
export interface Machines {
  /**
   * There is a disk of `machine.disk.version` with at least `gb`. Made from the source if there is none; what is there keeps its
   * content. A source server is held only for the moment (it may be on, off, and changed or removed afterwards). Rejects when it is
   * the first disk and the folder belongs to a server of another uuid: numbers may repeat after a database was restored, disks must not.
   */
  ensureDisk(machine: MachineSpec, source: DiskSource): Promise<void>;
  /**
   * This server's disk holds no longer what identifies the guest of the disk or image that it was made from. For one that was never
   * started: rejects while it runs. Asked again it gives the first answer. Where no file system can be opened, the disk stays as it is.
   */
  ensureIdentityRemoved(id: number, version: number, signal?: AbortSignal): Promise<Identity>;
  /** Of this server's disks only the one of this version is left: the end of a rebuild, and of its undoing. */
  ensureOnlyDisk(id: number, version: number): Promise<void>;
  /**
   * Null: it runs, as of this boot or a later one; one that was paused goes on. While too many others are booting, how many are to be
   * started before it: ask again, at least every minute, until it is stopped or removed. Does not wait for the guest: see `stage`.
   * Rejects when it cannot be started, with the last words of the process; an error with `final: true` is one that no second try mends
   * (its disk is missing, or damaged).
   */
  ensureRunning(machine: MachineSpec): Promise<number | null>;
  /**
   * `cut`: the power goes; resolves to true. `ask`: its power button is pressed; resolves to whether it is off by the time `signal`
   * says, and goes on running if not.
   */
  ensureStopped(id: number, how: "cut" | "ask", signal?: AbortSignal): Promise<boolean>;
  /**
   * Brings a server, on or off, as near to the wish as it can be brought without a start. Never starts or stops it, or shrinks a
   * disk; of cores and memory it takes back what was added since the start, if the guest lets go of it.
   */
  apply(machine: MachineSpec): Promise<ApplyResults>;
  /** Nothing of the server is left: process, disks, folder, devices. Copies and images of it live on. An unknown one is fine. */
  remove(id: number): Promise<void>;
  /**
   * All disks of the server as they are at this moment, in a folder that can be copied and put back as the server's own; what was held
   * of it before is gone. Resolves to its path; null: servers are simulated. Held until released, or until the driver is opened anew.
   */
  holdDisks(id: number): Promise<string | null>;
  /** Of all servers. */
  releaseDisks(): Promise<void>;
  /** Everything at once, so that watching one server costs little less than watching all. */
  observe(): Promise<MachinesStatus>;
  /** From now on told of every start and end, those that nobody ordered within seconds. Ends with the call of what it returns. */
  onPower(listener: (event: PowerEvent) => void): () => void;
  /**
   * Name of the host's device that is the other end of a card, by the card's id: a tap, made anew at each start in the host's own
   * namespace, down until it is wanted up. The router driver of the same host takes it into a network (`Port.device` there).
   */
  deviceOf(nic: number): string;
  /** From now on called with the name of each device that a start or `apply` has left on the host. Ends with the call of what it returns. */
  onDevice(listener: (device: string) => void): () => void;
}

/** Images that disks are made from: those that the operator offers, and those that are made here or brought in. */
export interface Images {
  /** The default first. */
  listOperatorImages(): Promise<readonly OperatorImage[]>;
  /** The operator's image of that name is here. Resolves to its folder. */
  ensureFetched(name: string, options?: TransferOptions): Promise<string>;
  /** The folder of images has one of that name, with the disk from outside. What rejects may be tried again. */
  ensureImported(
    name: string,
    about: ImportText,
    origin: ImageOrigin,
    options?: TransferOptions,
  ): Promise<Imported | Refused>;
  /** Null: nothing is wrong with the origin, as far as can be said before anything is fetched. */
  checkOrigin(origin: ImageOrigin): Promise<Refused | null>;
  /**
   * The server's disk as it is at this moment is kept, for an image of that name. The server is held only for the moment, and
   * whatever becomes of it, of the service or of the process afterwards, what is kept stays as it is.
   */
  ensureSnapshot(id: number, name: string): Promise<void>;
  /**
   * The folder of images has one of that name, whole and independent, written out of the snapshot that was kept for it of this
   * server's disk and is then gone. Resolves to what it needs: GB of a disk, bytes on the machine's.
   */
  ensureImage(id: number, name: string, about: ImageText, signal?: AbortSignal): Promise<ImageSize>;
  /** An image that servers were made from may go: they keep what they need of it. So may its snapshot. An unknown one is fine. */
  removeImage(name: string): Promise<void>;
  /** Images that servers' owners made, and snapshots that are kept for some: also those that no row knows. */
  listImages(): Promise<readonly HeldImage[]>;
}

/** What guests print and show. */
export interface Consoles {
  /** What the serial line said since the start; null: there was none such. Very long logs lose their middle. */
  readLog(id: number, spec?: ReadLogOptions): Promise<string | null>;
  /** The serial line itself; who was there before is shown out. Rejects while the server is off. */
  openSerial(id: number): Promise<Stream>;
  /** The screen, RFB 3.8. Rejects while the server is off. */
  openVnc(id: number): Promise<Stream>;
}

/** One driver of a host. */
export interface MachineDriver extends Machines, Images, Consoles {
  /** Ends the driver, not the servers: they run on, and the next driver finds them. */
  close(): Promise<void>;
}

export type Family = "Linux" | "Windows" | "Bsd";

/** An image that the operator of the host offers. `folder: null`: it is not here yet, and can be fetched by its name. */
export interface OperatorImage {
  readonly name: string;
  readonly title: string;
  readonly family: Family;
  /** `Debian`. */
  readonly os: string;
  /** MB and GB that a server needs at least. */
  readonly minRam: number;
  readonly hdd: number;
  readonly folder: string | null;
  /** What carries out user data in its guests; null: not known. */
  readonly guest: "tiny" | "cloud-init" | null;
}

export type ImageOrigin =
  /** With 64 hexadecimal digits. */
  | { readonly url: string; readonly sha256: string }
  /** A name in the folder for imports. */
  | { readonly file: string; readonly sha256: string | null };

/** What people read about an image from outside. */
export interface ImportText {
  readonly title: string;
  readonly family: Family;
  /** MB. */
  readonly minRam: number;
}

export interface TransferOptions {
  readonly signal?: AbortSignal;
  /** Bytes, of all that there will be if that is known. */
  readonly progress?: (done: number, total: number | null) => void;
}

/** GB of the disk. */
export interface Imported {
  readonly hdd: number;
}

/** Why a disk is not taken, whoever tries. */
export interface Refused {
  readonly refused: string;
}

export interface HeldImage {
  /** Of its folder. */
  readonly name: string;
  /** A snapshot is what an image is written from; it can only be removed. */
  readonly kind: "image" | "snapshot";
  readonly title: string;
  readonly family: Family;
  /** MB and GB that a server needs; 0 where that cannot be read. */
  readonly minRam: number;
  readonly gb: number;
  /** On the machine's own disks. */
  readonly bytes: number;
}

/** What people read about an image; the rest (family, how it boots) is as in the one that the server was made from. */
export interface ImageText {
  readonly title: string;
  /** The image is the server's own, as a backup is: what tells who its guest is stays in it. */
  readonly keepsIdentity?: boolean;
}

/** Whether an image or a disk was freed of what makes its guest that one guest (host keys, passwords, logs …), and why not. */
export interface Identity {
  readonly removed: boolean;
  /** "" when it was. */
  readonly detail: string;
}

export interface ImageSize {
  readonly gb: number;
  readonly bytes: number;
  readonly identity: Identity;
}
