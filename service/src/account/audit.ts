/** Converts audit rows between the HTTP layer, the table and the responses of `GET /audit`. */
import type { AuditEntry } from "@brume/api/account.ts";
import { formatDate } from "@brume/api/common.ts";
import type { AuditRow } from "../http/handler.ts";
import type { AuditTable } from "../http/refusallog.ts";
import * as table from "./table.ts";

const rowOf = (row: AuditRow): Omit<table.AuditRow, "id"> => ({
  project_id: row.caller?.projectId ?? 0,
  date: row.date,
  token_id: row.caller?.tokenId ?? 0,
  token_name: row.caller?.tokenName ?? "",
  address: row.address,
  operation: row.operation,
  resource: row.resource,
  resource_id: row.resourceId,
  status: row.status,
  request_id: row.requestId,
  before: row.before,
  after: row.after,
  count: 1,
  last_date: null,
});

/** Writes audit rows of the HTTP server to the table `audit`. */
export const auditTable: AuditTable = {
  write(tx, row) {
    table.putAudit(tx, rowOf(row));
    return Promise.resolve();
  },
  insert: (tx, row) => table.insertAudit(tx, rowOf(row)),
  async add(tx, id, more, date) {
    await table.addToAudit.run(tx, { id, more, date });
  },
};

/** Returns the entry that responses contain. */
export const showAudit = (row: table.AuditRow): AuditEntry => ({
  ID: row.id,
  Date: formatDate(row.date),
  TokenID: row.token_id === 0 ? null : row.token_id,
  TokenName: row.token_name,
  Address: row.address,
  Operation: row.operation,
  Resource: row.resource,
  ResourceID: row.resource_id,
  Status: row.status,
  RequestID: row.request_id,
  Before: row.before === null ? null : JSON.parse(row.before),
  After: row.after === null ? null : JSON.parse(row.after),
  Count: row.count,
  LastDate: formatDate(row.last_date ?? row.date),
});
