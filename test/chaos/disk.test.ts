/**
 * docs/spec.md#acknowledged-changes-survive on a full disk: changes are rejected with an error, reads and DNS work, and with free space
 * changes work again with nothing lost.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "@brume/api/client.ts";
import { checkProblem } from "../support/contractcheck.ts";
import { openDnsClient } from "../support/dnsclient.ts";
import { createProcess, type Process, type ProcessOptions } from "../support/process.ts";
import { waitUntil } from "../support/waituntil.ts";
import { lookUp } from "./load.ts";
import { checkStored } from "./stored.ts";

/** A disk that becomes full. */
interface Disk {
  readonly options: ProcessOptions;
  /** Matches the detail of a rejected change. */
  readonly reason: RegExp;
  makeRoom(brume: Process): void;
  remove(): void;
}

/** The file size limit of the process replaces the size of the disk: the write of a page fails. */
const limited: Disk = {
  options: { prefix: "trap '' XFSZ; ulimit -S -f 4800;" },
  reason: /^The database is not available\./,
  makeRoom: (brume) => void execFileSync("prlimit", [`--pid=${brume.pid}`, "--fsize=unlimited:"]),
  remove: () => {},
};

/** Mounts a file system of a few megabytes. Returns a text with the reason if this process must not mount. */
function mountSmall(): Disk | string {
  if (process.getuid?.() !== 0) return "only root may mount a small file system";
  const folder = mkdtempSync(join(tmpdir(), "brume-disk-"));
  const mount = (...options: string[]) => execFileSync("mount", [...options, folder], { stdio: "pipe" });
  try {
    mount("-t", "tmpfs", "-o", "size=2m,mode=700", "brume-test");
  } catch (error) {
    rmSync(folder, { recursive: true });
    return `no file system can be mounted here: ${(error as Error).message.trim()}`;
  }
  mkdirSync(join(folder, "data"));
  return {
    options: { folder: join(folder, "data") },
    reason: /^The disk of the database is full: the operator must free some space\./,
    makeRoom: () => void mount("-o", "remount,size=256m"),
    remove() {
      execFileSync("umount", [folder]);
      rmSync(folder, { recursive: true });
    },
  };
}

const disks: Record<string, () => Disk | string> = {
  "a limited file size": () => limited,
  "a small disk": mountSmall,
};

for (const [name, get] of Object.entries(disks))
  test(`sqlite on ${name}: full`, async (context) => {
    const disk = get();
    if (typeof disk === "string") return context.skip(disk);
    try {
      await fill(disk, context);
    } finally {
      disk.remove();
    }
  });

async function fill(disk: Disk, context: TestContext): Promise<void> {
  const brume = await createProcess("sqlite", disk.options);
  try {
    const { client } = brume;
    const { ID } = await client.createDomain({ body: { Name: "full.test" } });
    const kept = new Map<string, number>();
    const refused = new Set<string>();
    let count = 0;
    let isOver = false;
    let hasSpace = false;
    const write = async (): Promise<void> => {
      while (!isOver) {
        const Name = `r${++count}`;
        try {
          const body = { DomainId: ID, Name, Text: "x".repeat(1000) };
          const made = await client.createRecordTXT({ body }, { idempotencyKey: Name });
          kept.set(Name, made.ID);
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          checkProblem(error.problem, "createRecordTXT");
          assert.equal(error.code, "storage_unavailable");
          assert.match(error.problem.detail, disk.reason);
          assert.ok(!hasSpace, "a change is refused only without free space");
          refused.add(Name);
          await sleep(1);
        }
      }
    };
    const writing = Promise.all(Array.from({ length: 8 }, write));
    const until = async (isEnough: () => boolean): Promise<void> => {
      const counts = () => Promise.race([writing, Promise.resolve({ kept: kept.size, refused: refused.size })]);
      await waitUntil("more changes", counts, isEnough, 2);
    };
    const shown = async (): Promise<number> => (await client.readDomain({ path: { id: ID } })).LinkedRecords.length;

    await until(() => refused.size > 50);
    const before = kept.size;
    assert.ok(before > 0);
    assert.ok((await shown()) >= before, "reads work");
    const dnsClient = await openDnsClient(brume.dns);
    try {
      assert.deepEqual(await lookUp(dnsClient, "missing.full.test"), [], "the name server works");
    } finally {
      dnsClient.close();
    }
    assert.equal((await fetch(`${brume.url}/healthz`)).status, 200);

    disk.makeRoom(brume);
    // A change that failed before the space was freed may still be in the queue.
    await until(() => kept.size > before + 8);
    hasSpace = true;
    await until(() => kept.size > before + 200);
    isOver = true;
    await writing;

    for (const Name of [...refused].slice(0, 20)) {
      const body = { DomainId: ID, Name, Text: "x".repeat(1000) };
      const { answer, headers } = await client.raw.createRecordTXT({ body }, { idempotencyKey: Name });
      assert.equal(headers.get("idempotency-replayed"), null, "a refused change does not store its idempotency key");
      kept.set(Name, answer.ID);
      refused.delete(Name);
    }
    context.diagnostic(`${before} kept, then ${refused.size} refused, then ${kept.size - before} more`);

    // With a limited file size the restarted service has the same problem: it logs that a few times, not thousands of times.
    await brume.end("SIGKILL");
    await brume.start();
    const { LinkedRecords } = await brume.client.readDomain({ path: { id: ID } });
    const served = new Map(LinkedRecords.map((record) => [record.HostName.split(".")[0], record.ID]));
    assert.deepEqual(
      [...kept].filter(([each, id]) => served.get(each) !== id),
      [],
    );
    assert.deepEqual(
      [...refused].filter((each) => served.has(each)),
      [],
    );
    assert.equal(served.size, kept.size);
    await checkStored(brume);
    assert.ok(brume.log.length < 60, `${brume.log.length} lines in the log`);
    assert.equal(await brume.end("SIGTERM"), 0, brume.log.at(-1)?.msg);
  } finally {
    await brume.close();
  }
}

test("sqlite: a log that has filled the disk is moved into the database, and changes work again", async (context) => {
  const brume = await createProcess("sqlite", { prefix: "trap '' XFSZ; ulimit -S -f 8000;" });
  try {
    // The end moves the log of the start into the file.
    await brume.end("SIGTERM");
    await brume.start();
    const { client } = brume;
    const { ID } = await client.createDomain({ body: { Name: "log.test" } });
    let stored = 0;
    let refused = 0;
    const write = async (): Promise<void> => {
      try {
        await client.updateDomain({ path: { id: ID }, body: { Labels: { count: `${stored}` } } });
        stored += 1;
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "storage_unavailable") throw error;
        refused += 1;
        await sleep(20);
      }
    };
    const writeMore = async () => {
      await write();
      return { stored, refused };
    };
    await waitUntil("a log without space", writeMore, (count) => count.refused > 0, 0);
    const before = stored;
    const end = performance.now() + 120_000;
    // A log without space has at most space for one of the smallest changes.
    while (stored < before + 100) {
      assert.ok(performance.now() < end, `${before} stored, then ${stored - before} more and ${refused} refused`);
      await write();
    }
    context.diagnostic(`${before} stored, then ${refused} refused, then ${stored - before} more`);
    const { Labels } = await client.readDomain({ path: { id: ID } });
    assert.deepEqual(Labels, { count: `${stored - 1}` });
    await checkStored(brume);
  } finally {
    await brume.close();
  }
});
