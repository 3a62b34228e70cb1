/**
 * The driver interface for virtual servers on one host. It has three parts: `Machines` (life cycle and observation), `Images` (sources of
 * disks) and `Consoles` (serial log, serial console and screen). A driver implements all three. Arguments and results are plain data
 * without functions, so a driver on another host can send each call as one request. A `signal` cancels the request; a `progress` function
 * reports its progress. Long-lived streams are events (`on…`) and consoles (`open…`). Every call is idempotent: after a failure or a kill
 * it can be repeated, and it does only what is missing. Calls on one server run one after the other. A driver knows nothing of projects,
 * prices or the API. Times are milliseconds since 1970, memory is MB (2^20 bytes), disks are GB (2^30 bytes), all other sizes are bytes.
 */

/** A network interface of a VM. Its other end is a TAP device on the host, named by `Machines.deviceOf`. */
export interface Nic {
  /** Unique in the installation, like the port of the NIC in its network. */
  readonly id: number;
  readonly mac: string;
}

/** A file on the seed volume (label CIDATA), which the guest reads at its first boot. */
export interface SeedFile {
  readonly name: string;
  readonly content: string | Uint8Array;
}

/** The complete desired state of one server. */
export interface MachineSpec {
  /** Unique in the installation. */
  readonly id: number;
  readonly uuid: string;
  /** Name that the user gave it; identifies the disk when the database is lost. */
  readonly name?: string;
  /** Id of the owner. Owners take turns in the boot queue. */
  readonly owner: number;
  /**
   * Grows by one with each requested start or reset. `ensureRunning` restarts a VM that runs with an older boot number and keeps one that
   * runs with this number, so a repeated request resets the server only once.
   */
  readonly boot: number;
  readonly cpus: number;
  readonly memory: number;
  /** CPU weight relative to other servers when cores are scarce: 1, or 2 for high performance. */
  readonly share: number;
  readonly disk: {
    /** Grows by one with each rebuild. Disks of several versions can exist at once; the server starts from this one. */
    readonly version: number;
    /** GB. Never decreases within a version. */
    readonly gb: number;
  };
  /** The guest numbers its NICs in this order; hot-plugged ones come last. */
  readonly nics: readonly Nic[];
  /** Written at each start. With a new instance id in it, the guest initializes itself as a new server. */
  readonly seed: readonly SeedFile[];
}

/**
 * Source of a disk's content: an image, by the name of its folder, or the current disk of another server. The disk of a running server is
 * crash-consistent; its file systems are flushed if the guest agent supports it. Both sources are shared copy-on-write.
 */
export type DiskSource = { readonly image: string } | { readonly server: number };

/** Outcome for one property: unchanged, changed now, or a restart is needed. */
export type ApplyResult = "same" | "live" | "nextStart";

/** Outcome of `Machines.apply`, per property. */
export interface ApplyResults {
  readonly cpus: ApplyResult;
  readonly memory: ApplyResult;
  /** `live` also when the disk of a stopped server was grown. */
  readonly disk: ApplyResult;
  readonly share: ApplyResult;
  readonly nics: ApplyResult;
}

/**
 * How a run ended. `order`: the driver ended the VM on request. `guest`: the guest shut down by itself or after a shutdown request. `host`:
 * the host shut down or rebooted. `died`: none of these; `detail` contains the last output of the process.
 */
export interface Exit {
  readonly reason: "order" | "guest" | "host" | "died";
  readonly at: number;
  readonly detail: string;
}

/** Boot progress of a guest on its serial console: no sign yet, a login prompt, or (only images that report it) first boot complete. */
export type BootStage = "starting" | "login" | "ready";

/** One disk of a server. */
export interface DiskStatus {
  readonly version: number;
  readonly gb: number;
  /** Bytes on the host's disks that only this server uses. Shared layers are not counted. */
  readonly allocated: number;
}

/** Resource usage of a VM. Counters start at the start of the VM; `memory` and `resident` are current values. */
export interface Usage {
  /** Milliseconds of CPU time on one core. */
  readonly cpuTime: number;
  /** MB in use, as reported by the guest; null if it does not report it. */
  readonly memory: number | null;
  /** MB of host memory that the process uses. */
  readonly resident: number;
  readonly diskRead: number;
  readonly diskWritten: number;
}

/** Description of a server, stored beside its disks, which identifies them without the database. */
export interface Label {
  /** Of the server that owns the folder; "" if only an older release wrote there. */
  readonly uuid: string;
  readonly name: string;
  readonly cpus: number;
  readonly memory: number;
  /** Folder of the image that its disk was created from; "" if unknown. */
  readonly image: string;
}

/**
 * A problem of a running VM. `NotResponding`: no response from its process for 10 seconds. `IoError`: QEMU paused it because its disk
 * cannot be written. `Paused`: it is paused for another reason.
 */
export type MachineTrouble = "NotResponding" | "IoError" | "Paused";

/**
 * Actual state of one server. Network traffic is not included: the router driver owns the devices, and its `PortStatus` counts their
 * traffic.
 */
export interface MachineStatus {
  readonly id: number;
  /** Null if only its number is known. */
  readonly label: Label | null;
  /** `paused` is never requested: the host's disks are full or broken, or an operator paused the VM through the debug monitor. */
  readonly power: "off" | "running" | "paused";
  readonly trouble: MachineTrouble | null;
  /** It is paused and can resume, for example because its disk can grow again. */
  readonly canResume: boolean;
  /** Time of the start or, while off, of the end of the last run; null if it never ran. */
  readonly since: number | null;
  /** How its last run ended; null while it runs and before the first run. */
  readonly exit: Exit | null;
  /** Boot number of the current or last run; 0 if it never ran. */
  readonly boot: number;
  /** Disk version of the current run; 0 while off. */
  readonly version: number;
  /** Current number of vCPUs; 0 while off. */
  readonly cpus: number;
  readonly memory: number;
  /** Maximum that `apply` can reach without a restart; 0 while off. */
  readonly reach: { readonly cpus: number; readonly memory: number };
  readonly stage: BootStage | null;
  readonly disks: readonly DiskStatus[];
  /** Null while off, and when the VM does not respond in time. */
  readonly usage: Usage | null;
  /** Explanation for operators, such as why it is paused; else "". */
  readonly detail: string;
}

/** Capacity of the host. */
export interface Capacity {
  readonly cores: number;
  readonly memory: number;
  /** GB of the file system that contains the servers. */
  readonly disk: number;
  readonly diskFree: number;
}

/** `kvm`: hardware virtualization; `tcg`: emulation by QEMU. */
export type Accelerator = "kvm" | "tcg";

/** Actual state of the host and all its servers. */
export interface MachinesStatus {
  readonly ready: boolean;
  readonly detail: string;
  /** Null if servers are simulated. */
  readonly accelerator: Accelerator | null;
  readonly capacity: Capacity;
  /** All servers found by folder, process or device. `remove` deletes those that the database does not contain. */
  readonly machines: readonly MachineStatus[];
}

/** Result of one capability check at the start; if `works` is false, `detail` explains the consequence. */
export interface Probe {
  readonly name: string;
  readonly works: boolean;
  readonly detail: string;
}

/** A server was started or has ended, for any reason. `exit` is null when it was started. */
export interface PowerEvent {
  readonly id: number;
  readonly boot: number;
  readonly exit: Exit | null;
}

/** A bidirectional byte stream. `end` and `destroy` do not affect the server. */
export interface Stream extends NodeJS.ReadWriteStream {
  destroy(error?: Error): void;
}

/** Selects a part of the serial logs. */
export interface ReadLogOptions {
  /** True: the log of the previous boot. */
  readonly previous?: boolean;
  /** Only this number of lines from the end. */
  readonly tail?: number;
}

/** Life cycle and observation of servers. */
export interface Machines {
  /**
   * Ensures that a disk of `machine.disk.version` with at least `gb` exists. Creates it from the source if it is missing; an existing disk
   * keeps its content. The source is locked only for a moment; it may be on or off, and may be changed or removed afterwards. Rejects if
   * this is the first disk and the folder belongs to a server with another uuid: after a database restore ids can repeat, but disks must
   * not be mixed up.
   */
  ensureDisk(machine: MachineSpec, source: DiskSource): Promise<void>;
  /**
   * Removes from a disk what identifies the guest that it was copied from. Rejects while the server runs; intended for a disk that was
   * never started. Idempotent: a repeated call returns the first result. A disk without a readable file system stays unchanged.
   */
  ensureIdentityRemoved(id: number, version: number, signal?: AbortSignal): Promise<Identity>;
  /** Removes all disks of the server except this version. Used at the end of a rebuild and when a rebuild is undone. */
  ensureOnlyDisk(id: number, version: number): Promise<void>;
  /**
   * Starts the server unless it already runs with this boot number or a later one, and resumes a paused VM. Resolves to null if it runs,
   * otherwise to its position in the boot queue. In that case, call again at least every minute, or call `ensureStopped` or `remove` to
   * leave the queue. Does not wait until the guest has booted: see `stage`. Rejects with the last output of the process if the start fails.
   * An error with `final: true` (the disk is missing or damaged) will not be solved by a retry.
   */
  ensureRunning(machine: MachineSpec): Promise<number | null>;
  /**
   * Stops the server. `cut` ends the VM at once and resolves to true. `shutdown` presses its power button and resolves to whether it is off
   * before `signal` aborts; otherwise the server continues to run.
   */
  ensureStopped(id: number, how: "cut" | "shutdown", signal?: AbortSignal): Promise<boolean>;
  /**
   * Brings a server, running or stopped, as close to the desired state as possible without a restart. Never starts or stops it and never
   * shrinks a disk. It removes only cores and memory that were added since the start, and only if the guest releases them.
   */
  apply(machine: MachineSpec): Promise<ApplyResults>;
  /** Removes process, disks, folder and devices of the server. Its copies and images stay. Succeeds for an unknown id. */
  remove(id: number): Promise<void>;
  /**
   * Takes a copy of all disks of the server at this moment, in a folder that can be copied and later restored as the server's own. Replaces
   * an earlier copy. Resolves to the folder's name, beside the folders of the servers, or to null if servers are simulated. The copy exists
   * until `releaseDisks` or until the driver is opened again.
   */
  holdDisks(id: number): Promise<string | null>;
  /** Removes the copies made by `holdDisks`, for all servers. */
  releaseDisks(): Promise<void>;
  /**
   * Returns the state of the host and all servers in one call, which costs little more than the state of one. With `only`, returns the
   * state of these servers, at a cost that does not depend on the number of all.
   */
  observe(only?: readonly number[]): Promise<MachinesStatus>;
  /** Subscribes to starts and ends of all servers; unrequested ones are reported within seconds. Returns a function that unsubscribes. */
  onPower(listener: (event: PowerEvent) => void): () => void;
  /**
   * Returns the name of the TAP device on the host for a NIC id. The device is created anew at each start, in the host's own network
   * namespace, and is down. The router driver of the same host moves it into a network (`Port.device` there).
   */
  deviceOf(nic: number): string;
  /** Subscribes to the names of devices that a start or `apply` has created on the host. Returns a function that unsubscribes. */
  onDevice(listener: (device: string) => void): () => void;
}

/** Images that disks are created from: images of the operator, images of users and imported ones. */
export interface Images {
  /** Lists the images of the operator, the default image first. */
  listOperatorImages(): Promise<readonly OperatorImage[]>;
  /** Fetches the operator's image of that name if it is missing. Resolves to its folder. */
  ensureFetched(name: string, options?: TransferOptions): Promise<string>;
  /** Ensures that there is an image of that name with the foreign disk. A `Refused` result is final; a rejected call may be retried. */
  ensureImported(
    name: string,
    about: ImportText,
    origin: ImageOrigin,
    options?: TransferOptions,
  ): Promise<Imported | Refused>;
  /** Checks an origin without fetching it, of an upload the space for so many bytes. Resolves to null if no error was found. */
  checkOrigin(origin: ImageOrigin): Promise<Refused | null>;
  /**
   * Takes a snapshot of the server's disk for an image of that name. The server is locked only for a moment. Later changes, the removal of
   * the server and a crash of the service do not affect the snapshot.
   */
  ensureSnapshot(id: number, name: string): Promise<void>;
  /**
   * Writes the snapshot of that name as an independent image and removes the snapshot. Resolves to the size that a disk needs (GB) and the
   * size on the host's disks (bytes).
   */
  ensureImage(id: number, name: string, about: ImageText, signal?: AbortSignal): Promise<ImageSize>;
  /** Removes an image and its snapshot. Servers that were created from it keep their data. Succeeds for an unknown name. */
  removeImage(name: string): Promise<void>;
  /** Lists the names of all images and of the snapshots for images not yet written, also of unknown ones. Reads directories only. */
  listImages(): Promise<readonly HeldName[]>;
  /** Reads the images and snapshots of at most 500 names. Those that do not exist are missing in the result. */
  readImages(names: readonly string[]): Promise<readonly HeldImage[]>;
}

/** Serial console and screen of guests. */
export interface Consoles {
  /** Returns the output of the serial console since the start, or null if there is no log. From a very long log, the middle is missing. */
  readLog(id: number, spec?: ReadLogOptions): Promise<string | null>;
  /** Connects to the serial console and disconnects the previous client. Rejects while the server is off. */
  openSerial(id: number): Promise<Stream>;
  /** Connects to the screen (RFB 3.8). Rejects while the server is off. */
  openVnc(id: number): Promise<Stream>;
}

/** The complete driver of one host. */
export interface MachineDriver extends Machines, Images, Consoles {
  /** Closes the driver. Servers continue to run, and the next driver finds them. */
  close(): Promise<void>;
}

/** Kind of guest operating system. */
export type Family = "Linux" | "Windows" | "Bsd";

/** An image that the operator of the host offers. `folder` is null if it is not on the host yet; it can then be fetched by its name. */
export interface OperatorImage {
  readonly name: string;
  readonly title: string;
  readonly family: Family;
  /** Name of the distribution or system, such as `Debian`. */
  readonly os: string;
  /** Minimum memory (MB) and disk (GB) of a server. */
  readonly minRam: number;
  readonly hdd: number;
  readonly folder: string | null;
  /** The program that applies user data in its guests; null if unknown. */
  readonly guest: "tiny" | "cloud-init" | null;
}

/** An address, a file in the import folder, or an upload of so many bytes. `sha256` has 64 hexadecimal digits; null: not checked. */
export type ImageOrigin =
  | { readonly url: string; readonly sha256: string }
  | { readonly file: string; readonly sha256: string | null }
  | { readonly upload: number; readonly sha256: string | null };

/** Description of an imported image. */
export interface ImportText {
  readonly title: string;
  readonly family: Family;
  /** MB. */
  readonly minRam: number;
}

/** Cancellation and progress of a transfer. */
export interface TransferOptions {
  readonly signal?: AbortSignal;
  /** Called with the bytes done and, if known, the total. */
  readonly progress?: (done: number, total: number | null) => void;
}

/** Result of an import; `hdd` is the size of the disk in GB. */
export interface Imported {
  readonly hdd: number;
}

/** A permanent refusal of a disk; the text is one sentence with the reason. */
export interface Refused {
  readonly refused: string;
}

/** What identifies an image or snapshot that exists on the host. */
export type HeldName = Pick<HeldImage, "name" | "kind">;

/** An image or snapshot that exists on the host. */
export interface HeldImage {
  /** Name of its folder. */
  readonly name: string;
  /** A snapshot is the source of an image that is not written yet; it can only be removed. */
  readonly kind: "image" | "snapshot";
  readonly title: string;
  readonly family: Family;
  /** Minimum memory (MB) and disk (GB) of a server; 0 if unreadable. */
  readonly minRam: number;
  readonly gb: number;
  /** Bytes on the host's disks. */
  readonly bytes: number;
}

/** Description of an image made from a server. Family and boot method come from the image of the server. */
export interface ImageText {
  readonly title: string;
  /** True for a backup: what identifies the guest stays in the image. */
  readonly keepsIdentity?: boolean;
}

/** Whether the data that identifies a guest (host keys, passwords, logs …) was removed from an image or disk, and if not, why. */
export interface Identity {
  readonly removed: boolean;
  /** Reason why it was not removed; "" if it was. */
  readonly detail: string;
}

/** Result of `ensureImage`: GB that a disk needs, bytes on the host's disks. */
export interface ImageSize {
  readonly gb: number;
  readonly bytes: number;
  readonly identity: Identity;
}
