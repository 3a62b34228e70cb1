/** Lists the calls by which a process reads files and directories, so that tests of costs do not depend on time. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

type Method = (...input: unknown[]) => unknown;

/** Functions that read, in `node:fs` and in `node:fs/promises`. */
const names = {
  sync: ["existsSync", "lstatSync", "openSync", "readFileSync", "readdirSync", "statSync"],
  promises: ["lstat", "open", "opendir", "readFile", "readdir", "stat"],
};

/** Runs `act`, and returns the calls meanwhile, as `readdirSync /proc`. */
export async function listFileCalls(act: () => Promise<unknown>): Promise<string[]> {
  const calls: string[] = [];
  const restores: (() => void)[] = [];
  const replace = (target: object, methods: readonly string[]): void => {
    const table = target as Record<string, Method>;
    for (const name of methods) {
      const method = table[name] as Method;
      table[name] = (...input) => {
        calls.push(`${name} ${String(input[0])}`);
        return Reflect.apply(method, target, input);
      };
      restores.push(() => void (table[name] = method));
    }
  };
  replace(fs, names.sync);
  replace(fs.promises, names.promises);
  syncBuiltinESMExports();
  try {
    await act();
  } finally {
    for (const restore of restores) restore();
    syncBuiltinESMExports();
  }
  return calls;
}
