/** The table of record types, from which all code that depends on the type of a record is derived. */
import { a } from "./a.ts";
import { aaaa } from "./aaaa.ts";
import { cname } from "./cname.ts";
import { mx } from "./mx.ts";
import { ns } from "./ns.ts";
import type { RecordSpec } from "./spec.ts";
import { srv } from "./srv.ts";
import { txt } from "./txt.ts";

const table = { A: a, AAAA: aaaa, CNAME: cname, MX: mx, NS: ns, SRV: srv, TXT: txt } as const;

/** Exact type of the table. */
export type RecordTable = typeof table;
/** Name of a record type. */
export type RecordType = keyof RecordTable;
/** Names of all record types. */
export const recordTypes = Object.keys(table) as RecordType[];
/** The spec of every type, by its name. */
export const recordSpecs: Readonly<Record<RecordType, RecordSpec>> = table;
/** The same, each with its exact type. */
export const exactSpecs = table;
