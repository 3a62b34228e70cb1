/** Query plans of SQLite for queries as features send them. */
import { type KyselyPlugin, type RootOperationNode, sql } from "kysely";
import type { Reader } from "../../service/src/store/db.ts";

/** Runs the work, and returns the plan of each query that it has executed: the lines of `explain query plan`. */
export async function explainQueries(read: Reader, work: (db: Reader) => Promise<void>): Promise<string[][]> {
  const built = new Map<object, RootOperationNode>();
  const executed: RootOperationNode[] = [];
  const note: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      built.set(queryId, node);
      return node;
    },
    async transformResult({ result, queryId }) {
      executed.push(built.get(queryId) as RootOperationNode);
      return result;
    },
  };
  await work(read.withPlugin(note));
  const plans: string[][] = [];
  for (const node of executed) {
    const { sql: text, parameters } = read.getExecutor().compileQuery(node, { queryId: "explained" });
    const literal = text.replaceAll("?", () => {
      const value = (parameters as unknown[]).shift();
      return typeof value === "string" ? `'${value}'` : String(value);
    });
    const { rows } = await sql.raw<{ detail: string }>(`explain query plan ${literal}`).execute(read);
    plans.push(rows.map(({ detail }) => detail));
  }
  return plans;
}
