/** `brume plan`, `brume apply` and `brume export`: a file that describes networks, servers and domains. */
import { readFile, stat, writeFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { applyPlan, type Failure } from "../cloud/apply.ts";
import type { Change } from "../cloud/change.ts";
import { exportCloud } from "../cloud/export.ts";
import { makePlan, type Plan } from "../cloud/plan.ts";
import { describe, planLines, planValue } from "../cloud/show.ts";
import { showError } from "../errors.ts";
import { type Cloud, type CloudFile, type Entry, readCloud } from "../model/cloud/document.ts";
import { cloudSchema } from "../model/cloud/shape.ts";
import { UsageError } from "../model/values.ts";
import { confirm } from "../perform.ts";
import { createProgress } from "../progress.ts";
import { isOn, type Run, type Session, textFlag } from "../session.ts";

const isForPeople = ({ options }: Session) => ["table", "wide"].includes(options.output);

/** Returns the entries with the content of the files that `@FILE` names in this field. */
async function fillIn<T extends object>(
  entries: readonly T[],
  field: string,
  read: (path: string) => Promise<string>,
): Promise<T[]> {
  return Promise.all(
    entries.map(async (one) => {
      const value = (one as Record<string, unknown>)[field];
      return typeof value === "string" && /^@./.test(value) ? { ...one, [field]: await read(value.slice(1)) } : one;
    }),
  );
}

/** Reads the file of `--file`, and the files that its secrets and user data name, relative to it. */
async function readFileOf(session: Session): Promise<CloudFile> {
  const path = session.options.file;
  if (path === null) throw new UsageError("--file is missing.", "Give the cloud file: --file cloud.yaml");
  const { cloud, error } = readCloud(await session.readText(path), path === "-" ? "standard input" : path);
  const folder = path === "-" ? "." : dirname(path);
  const read = async (name: string) => {
    const text = await session.readText(isAbsolute(name) || name === "-" ? name : join(folder, name));
    return text.replace(/^\uFEFF/, "");
  };
  const key = async (name: string) => (await read(name)).trim();
  const withKeys = async (entry: Entry): Promise<Entry> => {
    const { Tunnels } = entry as { readonly Tunnels?: readonly Entry[] };
    return Tunnels === undefined ? entry : { ...entry, Tunnels: await fillIn(Tunnels, "SharedKey", key) };
  };
  const filled: Cloud = {
    ...cloud,
    ...(cloud.Servers && { Servers: await fillIn(cloud.Servers, "UserData", read) }),
    ...(cloud.PublicNetworks && { PublicNetworks: await Promise.all(cloud.PublicNetworks.map(withKeys)) }),
  };
  return { cloud: filled, error };
}

async function readPlan(session: Session): Promise<Plan> {
  const file = await readFileOf(session);
  const plan = await makePlan(await session.client(), session.host.signal, file);
  for (const note of plan.notes) session.print.note(note);
  return plan;
}

/** `brume plan`. Exit code 2: there is something to do. */
export const plan: Run = async (session) => {
  const { changes, notes } = await readPlan(session);
  if (isForPeople(session)) session.print.lines(planLines(changes, session.print.style));
  else await session.print.result(planValue(changes, notes), "", true);
  return changes.length > 0 ? 2 : 0;
};

async function carryOut(session: Session, plan: Plan): Promise<{ failures: Failure[]; done: Set<Change> }> {
  const { host, options, print } = session;
  const progress = createProgress(host, options, "apply");
  const done = new Set<Change>();
  const timeout = options.timeout * 1000;
  try {
    const failures = await applyPlan(plan, {
      client: await session.client(),
      signal: host.signal,
      timeout,
      now: host.now,
      report: {
        progress: progress.show,
        done(change, ms) {
          done.add(change);
          progress.end();
          if (isForPeople(session))
            print.lines([`${print.style.green("✓")} ${describe(change)}  ${Math.ceil(ms / 1000)} s`]);
        },
      },
    });
    return { failures, done };
  } finally {
    progress.end();
  }
}

/** `brume apply`. */
export const apply: Run = async (session) => {
  const { print, host } = session;
  if (isOn(session, "schema")) return host.out.write(`${JSON.stringify(cloudSchema, null, 2)}\n`);
  if (session.options.file === "-" && !session.options.yes)
    throw new UsageError("The file is read from standard input, so nothing can be prompted.", "Add --yes.");
  const plan = await readPlan(session);
  const { changes, notes } = plan;
  if (isForPeople(session)) print.lines(planLines(changes, print.style));
  if (changes.length > 0) await confirm(session, "Apply these changes");
  const { failures, done } = await carryOut(session, plan);
  const stateOf = (change: Change) =>
    done.has(change) ? "Completed" : failures.some((one) => one.change === change) ? "Failed" : "NotStarted";
  if (!isForPeople(session)) await print.result(planValue(changes, notes, stateOf), "", true);
  const [first] = failures;
  if (first === undefined) return;
  for (const { change, error } of failures.slice(1))
    print.note(`${describe(change)}: ${showError(error, null, "http://localhost/").message}`);
  const rest = changes.length - done.size - failures.length;
  print.note(
    `${describe(first.change)} failed; ${done.size} of ${changes.length} changes are done${rest > 0 ? `, ${rest} were not started` : ""}. The next apply continues.`,
  );
  throw first.error;
};

/** `brume export`. */
export const exportFile: Run = async (session) => {
  const { host, options, print } = session;
  const path = options.file;
  const cloud = await exportCloud(await session.client(), host.signal, textFlag(session, "label") ?? null);
  const { stringify } = await import("yaml");
  const text = options.output === "json" ? `${JSON.stringify(cloud, null, 2)}\n` : stringify(cloud, { lineWidth: 0 });
  if (path === null || path === "-") return host.out.write(text);
  const old = await readFile(path, "utf8").catch(() => null);
  if (old === text) return print.note(`${path} is up to date.`);
  if (old !== null && (await stat(path)).isFile()) await confirm(session, `Overwrite ${path}`);
  await writeFile(path, text);
  print.note(`${path} is written.`);
};
