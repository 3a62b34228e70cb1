/** Rejected requests are in the audit, also if the service is killed right after the response. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sqliteFirst } from "../support/databases.ts";
import { createProcess } from "../support/process.ts";

for (const kind of sqliteFirst)
  test(`${kind}: rejected requests are in the audit after a kill right after the response`, async () => {
    const brume = await createProcess(kind);
    try {
      const send = (method: string, path: string, token = brume.token) =>
        fetch(brume.url + path, { method, headers: { authorization: `Bearer ${token}` } });
      const statuses: number[] = [];
      for (const [method, path, token] of [
        ["DELETE", "/dns/77777", brume.token],
        ["DELETE", "/dns/77777", brume.token],
        ["POST", "/dns", brume.token],
        ["GET", "/server", "0".repeat(64)],
      ] as const)
        statuses.push((await send(method, path, token)).status);
      await brume.end("SIGKILL");
      assert.deepEqual(statuses, [404, 404, 400, 401]);
      await brume.start();
      const entries = await brume.client.listAudit();
      assert.deepEqual(
        entries.reverse().map(({ Operation, Status, Count }) => [Operation, Status, Count]),
        [
          ["deleteDomain", 404, 2],
          ["createDomain", 400, 1],
          ["listServers", 401, 1],
        ],
      );
    } finally {
      await brume.close();
    }
  });
