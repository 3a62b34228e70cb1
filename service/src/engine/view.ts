/** Converts a task row into the view that the API shows: state, steps, progress, error. */
import type { WorkCode } from "@brume/api/work.ts";
import type { Selectable } from "kysely";
import type { TaskTable } from "../store/schema/infrastructure.ts";

/** A row of the table `task`. */
export type Row = Selectable<TaskTable>;

/** The object that a task works on. */
export interface Subject {
  /** Such as `server`. */
  readonly kind: string;
  readonly id: number;
}

/** State of one step. `start` and `end` are milliseconds since 1970, null before. `detail` is one sentence or empty. */
export interface StepRecord {
  readonly name: string;
  readonly state: "Pending" | "InProgress" | "Completed" | "Failed" | "Undone";
  readonly start: number | null;
  readonly end: number | null;
  readonly detail: string;
}

/** Public view of a flow's row. */
export interface Task {
  readonly id: number;
  readonly name: string;
  readonly subject: Subject;
  readonly project: number;
  readonly state: Exclude<TaskTable["state"], "Keeping">;
  /** When it was accepted, in milliseconds since 1970. */
  readonly start: number;
  readonly end: number | null;
  /** 0 to 100, never falls, 100 exactly when `Completed`. */
  readonly progress: number;
  readonly steps: readonly StepRecord[];
  /** Why it failed or was canceled; while it runs, the error of the last try. */
  readonly error: TaskError | null;
  readonly input: unknown;
  readonly facts: unknown;
  /** It failed or was canceled, and its steps are being undone. */
  readonly undoing: boolean;
}

/** Returns the step records with the current step as `InProgress`: rows contain only what has ended. */
function recordsOf(row: Row): StepRecord[] {
  const records = JSON.parse(row.steps) as StepRecord[];
  const running = row.state === "InProgress" && row.ending === null && row.begun_at !== null;
  if (!running) return records;
  return records.map((each) => (each.name === row.step ? { ...each, state: "InProgress", start: row.begun_at } : each));
}

/** Returns the public view of a flow's row. */
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

/** Returns the percentage of completed steps, rounded down. */
export function progressOf(records: readonly StepRecord[]): number {
  const done = records.filter((each) => each.state === "Completed").length;
  return records.length === 0 ? 100 : Math.floor((100 * done) / records.length);
}

/** Error of a task as the API shows it. `step` is null if no step caused it. */
export interface TaskError {
  readonly code: WorkCode;
  readonly title: string;
  readonly detail: string;
  readonly step: string | null;
  /** Last output of the failed program. */
  readonly log?: string;
}
