/** Errors for people, with cause and remedy, and the exit code of each kind of error. */
import { ActionError, ApiError, ConnectionError, WaitError } from "@brume/api/client.ts";
import type { Command } from "./model/commands.ts";
import { kindOfMissing, listHint } from "./model/kinds.ts";
import { UsageError } from "./model/values.ts";

/** Exit codes, and when each is returned. */
export const exitCodes = [
  [0, "success"],
  [1, "another error"],
  [2, "the command line is wrong, or a prompt was declined"],
  [3, "an object does not exist"],
  [4, "the state of an object does not allow it, or it exists already"],
  [5, "the token is missing, invalid or not allowed"],
  [6, "the service rejects a value"],
  [7, "the service does not respond, is not ready, or has no capacity"],
  [8, "background work failed, such as the boot of a server"],
  [9, "a wait took too long; the work continues"],
  [130, "Ctrl-C"],
] as const;

/** An error as it is shown. */
export interface Shown {
  readonly exit: number;
  readonly message: string;
  readonly lines: readonly string[];
  readonly remedy: string;
  /** URL of the description; shown if there is no remedy. */
  readonly reference?: string;
}

/** What to do, by error code. */
const remedies: Readonly<Record<string, string>> = {
  token_missing: "Give a token: brume context add NAME --url URL",
  token_invalid:
    "The token was deleted, or belongs to another installation. brume context list shows the installations.",
  token_expired: "Create a new token: brume token create NAME --scopes …",
  scope_missing: "Use a token with this scope. brume account get shows those of yours.",
  token_restricted: "The token is limited to some records. brume account get shows the limits.",
  project_blocked: "An administrator unblocks it: brume project update PROJECT --no-blocked",
  quota_exceeded: "Delete objects, or raise the quota: brume project update PROJECT --quotas …",
  server_protected: "Remove the protection first: brume server update SERVER --no-protected",
  server_busy: "Wait for the running action: brume action list SERVER",
  queue_full: "Wait for the running actions: brume action list SERVER",
  restart_needed: "Add --allow-restart, or power off the server first.",
  disk_cannot_shrink: "A disk can only grow.",
  image_not_ready: "brume image list shows its state.",
  network_in_use:
    "brume server list --network NETWORK shows the servers; brume server detach SERVER --network NETWORK removes one.",
  action_not_found: "brume action list SERVER shows all of them.",
  domain_exists: "brume domain get NAME shows it.",
  domain_not_available: "Another project has it. Claim it: brume claim create NAME",
  domain_reserved: "An administrator can release it: brume reservation list",
  record_exists: "brume record list DOMAIN shows the records.",
  cname_conflict:
    "brume record list DOMAIN shows the records at this name. Replace them at once: brume domain change DOMAIN --changes …",
  etag_mismatch: "Read the object again and repeat the change.",
  rate_limited: "Wait a moment, or use a token with a higher limit.",
  not_ready: "The service is starting or stopping. brume service ready shows what is missing.",
  no_capacity: "brume location list shows what is free.",
  pool_exhausted: "Delete a network, or give the service a larger pool (BRUME_PUBLIC_POOL).",
  engine_unavailable: "brume doctor shows which engine is missing and how to get it.",
  storage_unavailable: "The disk of the data folder may be full. brume doctor shows it.",
  boot_failed: "brume logs SERVER shows the console of the server.",
  guest_not_ready: "brume logs SERVER shows the console of the server.",
  ssh_not_ready: "brume logs SERVER shows the console of the server.",
  unreadable: "The URL leads to another program. brume context list shows the URLs.",
};

const exitOfStatus: Readonly<Record<number, number>> = {
  400: 6,
  401: 5,
  403: 5,
  404: 3,
  409: 4,
  412: 4,
  413: 6,
  415: 6,
  429: 7,
  503: 7,
};

/** Returns the flag or argument of a pointer (`/Labels/a` → `--label`), or the pointer. */
function placeOf(pointer: string, command: Command | null): string {
  const [field = ""] = pointer.replace(/^[/?]/, "").split("/");
  const arg = command?.args.find((one) => one.field === field && one.place !== "path");
  const flag = command?.flags.find((one) => one.field === field);
  const rest = pointer.replace(/^[/?]/, "").slice(field.length);
  if (arg) return `${arg.name}${rest}`;
  return flag ? `--${flag.name}${rest}` : pointer;
}

const shown = (exit: number, message: string, remedy = "", lines: readonly string[] = []): Shown => ({
  exit,
  message,
  lines,
  remedy,
});

function showConnection(error: ConnectionError): Shown {
  const cause = error.cause as (Error & { code?: string; cause?: Error & { code?: string } }) | undefined;
  const reason = cause?.cause?.code ?? cause?.cause?.message ?? cause?.code ?? cause?.message ?? "no reason";
  const where = /(https?:\/\/[^/]+)/.exec(error.message)?.[1] ?? "the service";
  const tls = /CERT|SIGNED|ALTNAME|SSL|TLS/.test(reason);
  return shown(
    7,
    `${where} does not respond (${reason}).`,
    tls
      ? "The certificate is not trusted. Set NODE_EXTRA_CA_CERTS to the file of its authority."
      : "Is the service running? systemctl start brume (package) or npm start (clone) starts it. brume context list shows the installations.",
  );
}

/** Describes an error: message, details, remedy and exit code. */
export function showError(error: unknown, command: Command | null, url: string): Shown {
  if (error instanceof UsageError) return shown(2, error.message, error.remedy, error.lines);
  if (error instanceof ApiError) {
    const details = error.errors.filter(({ detail }) => detail !== error.detail);
    const lines = details.map(({ pointer, detail }) =>
      pointer === "" ? detail : `${placeOf(pointer, command)}: ${detail}`,
    );
    const reference = error.problem === null ? "" : new URL(error.problem.type, url).href;
    const message =
      error.problem === null ? `${error.detail} (status ${error.status})` : `${error.detail} (${error.code})`;
    const exit = exitOfStatus[error.status] ?? 1;
    const kind = kindOfMissing[error.code];
    const remedy = remedies[error.code] ?? (kind && listHint(kind));
    return { ...shown(exit, message, remedy, lines), reference };
  }
  if (error instanceof ActionError) {
    const { Error: cause, Type, State, ServerID } = error.action;
    const step = error.step === null ? "" : `, step ${error.step}`;
    const message = `${Type} of server ${ServerID}: ${State}${step}: ${cause?.detail ?? "it was canceled."} (${error.code})`;
    const log = cause?.log ? ["Last lines of the console:", ...cause.log.trimEnd().split("\n")] : [];
    return shown(8, message, (remedies[error.code] ?? "").replace("SERVER", String(ServerID)), log);
  }
  if (error instanceof WaitError)
    return shown(
      9,
      `${error.message}. The work continues.`,
      "Give it more time with --timeout SECONDS, or use --no-wait.",
    );
  if (error instanceof ConnectionError) return showConnection(error);
  if (error instanceof Error && error.name === "AbortError")
    return shown(
      130,
      error.message.startsWith("Stopped.") ? error.message : "Stopped. Work that the service has accepted continues.",
    );
  const system = error as (NodeJS.ErrnoException & { readonly dest?: string }) | null;
  if (system?.code === "EISDIR")
    return shown(2, `${system.dest ?? system.path ?? "The path"} is a folder, not a file.`);
  if (system?.code === "EACCES" && system.path !== undefined)
    return shown(2, `This user may not open ${system.path}.`, "Use sudo, or another file.");
  if (system?.code === "ENOENT" && system.path !== undefined) return shown(2, `${system.path} does not exist.`);
  return shown(1, error instanceof Error ? error.message : String(error));
}
