/** A flow's row as the API shows it: state, steps, progress, error. */
import type { WorkCode } from "@brume/api/work.ts";
import type { Selectable } from "kysely";
import type { TaskTable } from "../store/schema.ts";

export type Row = Selectable<TaskTable>;

export interface Subject {
  readonly kind: string;
  readonly id: number;
}

/** Times are milliseconds since 1970, null until they happen. `detail` is one sentence or empty. */
export interface StepRecord {
  readonly name: string;
  readonly state: "Pending" | "InProgress" | "Completed" | "Failed" | "Undone";
  readonly start: number | null;
  readonly end: number | null;
  readonly detail: string;
}

/** A flow's row for its public view. */
export interface Task {
  readonly id: number;
  readonly name: string;
  readonly subject: Subject;
  readonly project: number;
  readonly state: Exclude<TaskTable["state"], "Keeping">;
  /** When it was accepted. */
  readonly start: number;
  readonly end: number | null;
  /** 0 to 100, never falls, 100 exactly when `Completed`. */
  readonly progress: number;
  readonly steps: readonly StepRecord[];
  /** Why it ended so; while it runs, the last trouble. */
  readonly error: TaskError | null;
  readonly input: unknown;
  readonly facts: unknown;
  /** It has failed or was canceled, and what it has done is being undone. */
  readonly undoing: boolean;
}

/** The records with the step that is being done shown as such; rows note only what is over. */
export function recordsOf(row: Row): StepRecord[] {
  const records = JSON.parse(row.steps) as StepRecord[];
  const running = row.state === "InProgress" && row.ending === null && row.begun_at !== null;
  if (!running) return records;
  return records.map((each) => (each.name === row.step ? { ...each, state: "InProgress", start: row.begun_at } : each));
}

export function viewOf(row: Row): Task {
  return {
    id: row.id,
    name: row.name,
    subject: { kind: row.subject, id: row.subject_id },
    project: row.project_id ?? 0,
    state: row.state as Task["state"],
    start: row.start_date,
    end: row.end_date,
    progress: row.progress,
    steps: recordsOf(row),
    error: row.error === null ? null : (JSON.parse(row.error) as TaskError),
    input: JSON.parse(row.input),
    facts: JSON.parse(row.facts),
    undoing: row.ending !== null,
  };
}

/** Whole percents of the steps that are completed. */
export function progressOf(records: readonly StepRecord[]): number {
  const done = records.filter((each) => each.state === "Completed").length;
  return records.length === 0 ? 100 : Math.floor((100 * done) / records.length);
}

/** What went wrong, as the API shows it; `step` is null when no step is to blame. */
export interface TaskError {
  readonly code: WorkCode;
  readonly title: string;
  readonly detail: string;
  readonly step: string | null;
  /** What the thing itself said last. */
  readonly log?: string;
}
