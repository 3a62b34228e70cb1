/**
 * Entry point. As root it starts the supervisor of two processes, the agent and the control plane; otherwise, and with
 * `BRUME_PROCESSES=1`, it starts the service in this process. The supervisor calls it again with `agent` or `control`. Each part is loaded
 * only in the process that runs it.
 */
import { createLog } from "./base/log.ts";
import { ConfigError } from "./config/value.ts";
import { type Config, loadConfig } from "./config.ts";

async function start(config: Config): Promise<void> {
  const [role] = process.argv.slice(2);
  if (role === "agent") return (await import("./launch/agent.ts")).startAgent(config);
  if (role === "control") return (await import("./launch/control.ts")).startControl(config);
  if (role !== undefined) throw new Error(`"${role}" is not a part of the service: agent, control, or none for all`);
  if (config.processes === 2 && !config.simulate && process.platform === "linux" && process.getuid?.() === 0)
    return (await import("./launch/start.ts")).becomeSupervisor(config, process.env);
  const [{ startService }, { openHost }, { readTls }] = await Promise.all([
    import("./start.ts"),
    import("./host.ts"),
    import("./launch/tls.ts"),
  ]);
  const log = createLog(config.logLevel);
  const tls = config.tls && (await readTls(config.tls));
  return startService(config, {
    log,
    folder: config.dataFolder,
    tls,
    introduces: true,
    openHost: () => openHost(config, log),
  });
}

try {
  await start(loadConfig(process.env));
} catch (error) {
  // Errors that we throw on purpose are sentences for operators. All others are bugs and need the stack.
  const isExpected =
    error instanceof ConfigError ||
    (error instanceof Error && (error.constructor === Error || error.name === "StorageError"));
  const text =
    isExpected || !(error instanceof Error) ? (error instanceof Error ? error.message : String(error)) : error.stack;
  const isDamaged = error instanceof Error && "isDamage" in error && error.isDamage === true;
  const advice = isDamaged ? '. Restore a backup: "Backup and restore" in docs/operate.md' : "";
  process.stderr.write(`Brume did not start: ${text}${advice}\n`);
  process.exit(1);
}
