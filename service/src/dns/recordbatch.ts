/**
 * Creates the records of many requests together, if they share a commit (`store/group.ts`): their domains, and the records at their names,
 * are read in one round trip to the database, and all rows are written in few statements. Each request still has its own serial, version
 * and event. A request that fails, or whose result depends on another one of the batch, is left to its own write.
 */
import type { RecordFields } from "@brume/api/dns.ts";
import type { RecordType } from "@brume/api/record/types.ts";
import { ApiError } from "../base/error.ts";
import type { Request } from "../http/handler.ts";
import { type Batch, reserveIds, type Tx } from "../store/db.ts";
import { findVisibleDomain, requireRecordAccess } from "./access.ts";
import { type Applied, type Author, createRecord } from "./apply.ts";
import { ownerField, readRecord, type StoredRecord } from "./model/record.ts";
import { nodesAround } from "./neighbours.ts";
import * as table from "./table.ts";

/** The request of a new record. */
export interface Creation {
  readonly type: RecordType;
  readonly request: Pick<Request, "caller" | "requestId"> & { readonly body: RecordFields };
}

/** A new record with the step of its domain. */
export type Created = Applied & { readonly row: table.RecordRow };

interface BatchOptions<O> {
  readonly authorOf: (request: Creation["request"]) => Author;
  readonly nameServers: readonly string[];
  /** Returns the output of a request. */
  readonly show: (created: Created) => O;
}

/** Domains whose names are kept. */
const mostNames = 10_000;

interface Wanted {
  readonly record: StoredRecord;
  readonly nodes: readonly string[];
}

/** What the batch knows of one domain. */
interface Zone {
  /** The row after the records created so far. */
  domain: table.OwnedDomain;
  readonly rows: Map<string, table.RecordRow[]>;
  /** Nodes of the records created so far. */
  readonly changed: Set<string>;
}

/** Returns the result of `act`, or undefined if it throws an error of the client: the write of the request then reports it. */
function tried<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/** Creates the batch of new records. */
export function createRecordBatch<O>({ authorOf, nameServers, show }: BatchOptions<O>): Batch<Creation, O> {
  /** Names of domains by id: they never change, and with them the records to read are known before the domain is read. */
  const names = new Map<number, string>();

  function read({ type, request }: Creation): Wanted | undefined {
    const { body, caller } = request;
    const ascii = names.get(body.DomainId ?? 0);
    if (ascii === undefined) return undefined;
    const record = tried(() => {
      const parsed = readRecord(type, body, { ascii });
      requireRecordAccess(caller, parsed);
      return parsed;
    });
    const nodes = record && nodesAround(record);
    return record && nodes ? { record, nodes } : undefined;
  }

  /** Reads the records around the new ones, by domain and node. */
  async function readAround(tx: Tx, inputs: readonly Creation[], wanted: readonly (Wanted | undefined)[]) {
    const nodes = new Map<number, Set<string>>();
    for (const [index, { request }] of inputs.entries()) {
      const id = request.body.DomainId ?? 0;
      const some = nodes.get(id) ?? new Set();
      for (const node of wanted[index]?.nodes ?? []) some.add(node);
      nodes.set(id, some);
    }
    const around = new Map<number, Map<string, table.RecordRow[]>>();
    await Promise.all(
      Array.from(nodes, async ([id, some]) => {
        const rows = some.size === 0 ? [] : await table.listAtNodes(tx, id, [...some]);
        around.set(
          id,
          Map.groupBy(rows, ({ node }) => node),
        );
      }),
    );
    return around;
  }

  async function readDomains(tx: Tx, inputs: readonly Creation[]): Promise<(table.OwnedDomain | undefined)[]> {
    const reading = new Map<string, Promise<table.OwnedDomain | undefined>>();
    return Promise.all(
      inputs.map(({ request: { body, caller } }) => {
        const key = `${body.DomainId} ${caller.projectId} ${caller.restriction?.domainId}`;
        const found = reading.get(key) ?? findVisibleDomain(tx, caller, body.DomainId ?? 0);
        reading.set(key, found);
        return found;
      }),
    );
  }

  return {
    async run(tx, inputs) {
      const ids = [...new Set(inputs.map(({ request }) => request.body.DomainId ?? 0))].sort((a, b) => a - b);
      for (const id of ids) await table.lockDomain(tx, id);
      let wanted = inputs.map(read);
      const isFirst = wanted.includes(undefined) && ids.some((id) => !names.has(id));
      const [domains, free, known] = await Promise.all([
        readDomains(tx, inputs),
        reserveIds(tx, "record", inputs.length),
        isFirst ? null : readAround(tx, inputs, wanted),
      ]);
      if (names.size > mostNames) names.clear();
      for (const domain of domains) if (domain !== undefined) names.set(domain.id, domain.ascii);
      if (known === null) wanted = inputs.map(read);
      const around = known ?? (await readAround(tx, inputs, wanted));

      const zones = new Map<number, Zone>();
      const created = inputs.map(({ type, request }, index): Created | undefined => {
        const [domain, own] = [domains[index], wanted[index]];
        if (domain === undefined || own === undefined) return undefined;
        const zone = zones.get(domain.id) ?? {
          domain,
          rows: around.get(domain.id) ?? new Map<string, table.RecordRow[]>(),
          changed: new Set<string>(),
        };
        zones.set(domain.id, zone);
        if (own.nodes.some((node) => zone.changed.has(node))) return undefined;
        const neighbours = own.nodes.flatMap((node) => zone.rows.get(node) ?? []).sort((a, b) => a.id - b.id);
        const { body } = request;
        const change = {
          op: "Create",
          record: own.record,
          labels: JSON.stringify(body.Labels ?? {}),
          at: "",
          pointer: `/${ownerField(type, body)}`,
          id: free[index] ?? 0,
        } as const;
        const result = tried(() => createRecord(tx, zone.domain, neighbours, change, authorOf(request), nameServers));
        if (result === undefined) return undefined;
        zone.domain = result.domain;
        zone.changed.add(result.row.node);
        return result;
      });
      table.insertRecords(
        tx,
        created.flatMap((each) => (each === undefined ? [] : [each.row])),
      );
      for (const { domain, changed } of zones.values()) if (changed.size > 0) table.stepDomain.send(tx, domain);
      return created.map((each) => each && show(each));
    },
  };
}
