/** Route handlers for SSH keys: list, read, create, delete. */
import type { FieldError } from "@brume/api/errors.ts";
import { requireQuota } from "../account/model/rules.ts";
import { findProject, lockProject } from "../account/table.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError, errorAt, fieldError, invalidFields } from "../base/error.ts";
import type { Handlers } from "../http/handler.ts";
import { takePage } from "../http/list.ts";
import type { Reader } from "../store/db.ts";
import { readPublicKey } from "./model/publickey.ts";
import { showSshKey, sshKeyTag } from "./model/show.ts";
import * as table from "./table.ts";

type Names = "listSshKeys" | "createSshKey" | "readSshKey" | "deleteSshKey";

function checkSshKey(body: { readonly PublicKey?: string }): FieldError[] {
  const key = body.PublicKey === undefined ? null : readPublicKey(body.PublicKey);
  return key !== null && "reason" in key
    ? [fieldError("/PublicKey", "format_invalid", `PublicKey ${key.reason}.`)]
    : [];
}

async function getSshKey(db: Reader, project: number, id: number): Promise<table.SshKeyRow> {
  const row = await table.findSshKey(db, project, id);
  if (row === undefined) throw new ApiError("sshkey_not_found", `There is no SSH key ${id} in this project.`);
  return row;
}

export function keyRoutes(clock: Clock): Handlers<Names> {
  return {
    listSshKeys: {
      async list({ query, caller }, db) {
        const page = takePage(await table.listSshKeys(db, caller.projectId), query, {
          id: (row) => row.id,
          name: (row) => row.title,
          labels: (row) => JSON.parse(row.labels) as Record<string, string>,
        });
        return { ...page, items: page.items.map(showSshKey) };
      },
    },
    readSshKey: {
      async read({ params, caller }, db) {
        const row = await getSshKey(db, caller.projectId, params.id);
        return { answer: showSshKey(row), tag: sshKeyTag(row) };
      },
    },
    createSshKey: {
      check: checkSshKey,
      async change({ body, caller, dryRun }, tx) {
        const key = readPublicKey(body.PublicKey);
        if ("reason" in key) throw invalidFields(checkSshKey(body));
        await lockProject(tx, caller.projectId);
        const project = await findProject.first(tx, { id: caller.projectId });
        if (project === undefined) throw new ApiError("token_invalid", "The project of the token has been deleted.");
        const same = await table.findSshKeyByTitle(tx, caller.projectId, body.Title);
        if (same?.base64 === key.base64) return { answer: showSshKey(same), tag: sshKeyTag(same), changes: [] };
        if (same !== undefined)
          throw errorAt(
            "title_taken",
            "/Title",
            `SSH key ${same.id} already has the title "${same.title}", with another key.`,
          );
        requireQuota(project.quotas, "SshKeys", await table.countSshKeys(tx, caller.projectId), 1);
        const inserted = await table.insertSshKey(tx, {
          ...key,
          project_id: caller.projectId,
          title: body.Title,
          created: clock.now(),
          labels: JSON.stringify(body.Labels ?? {}),
          version: 1,
        });
        const row = dryRun ? { ...inserted, id: 0 } : inserted;
        const answer = showSshKey(row);
        return {
          answer,
          tag: sshKeyTag(row),
          changes: [{ type: "sshkey.created", id: row.id, parent: null, before: null, after: answer }],
        };
      },
    },
    deleteSshKey: {
      async change({ params, caller, expect }, tx) {
        await lockProject(tx, caller.projectId);
        const row = await getSshKey(tx, caller.projectId, params.id);
        expect(sshKeyTag(row));
        await table.deleteSshKey(tx, row.id);
        return {
          answer: undefined,
          changes: [{ type: "sshkey.deleted", id: row.id, parent: null, before: showSshKey(row), after: null }],
        };
      },
    },
  };
}
