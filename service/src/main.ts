/**
 * Entry point. `config check` and `config show` only read the settings. As root it starts the supervisor of two processes, the agent and the control plane; otherwise, and with
 * `BRUME_PROCESSES=1`, it starts the service in this process. The supervisor calls it again with `agent` or `control`. Each part is loaded
 * only in the process that runs it.
 */
import { createLog } from "./base/log.ts";
import { readSources } from "./config/file.ts";
import { placesOf, reportSettings, showSettings } from "./config/report.ts";
import { ConfigError } from "./config/value.ts";
import { type Config, loadConfig, loadSettings } from "./config.ts";

/** Writes the settings with their sources as JSON. An invalid one is an error. */
async function reportConfig(): Promise<void> {
  const [, file] = process.argv.slice(2);
  const sources = readSources(file === undefined ? process.env : { ...process.env, BRUME_CONFIG: file });
  const { unknown } = loadSettings(process.env, sources);
  process.stdout.write(
    `${JSON.stringify({ File: sources.file, Unknown: unknown, Settings: reportSettings(sources) })}\n`,
  );
}

/** Starts the part of the service that the arguments name. Parts receive all settings as variables from the supervisor. */
async function start(): Promise<void> {
  const [role] = process.argv.slice(2);
  if (role === "config") return reportConfig();
  const isPart = role === "agent" || role === "control";
  const sources = isPart ? null : readSources(process.env);
  const config: Config = sources === null ? loadConfig(process.env) : loadSettings(process.env, sources);
  const environment = sources?.environment ?? process.env;
  const places = sources === null ? {} : placesOf(sources);
  if (role === "agent") return (await import("./launch/agent.ts")).startAgent(config);
  if (role === "control") return (await import("./launch/control.ts")).startControl(config, process.env);
  if (role !== undefined)
    throw new Error(`"${role}" is not a part of the service: agent, control, config, or none for all`);
  if (config.processes === 2 && !config.simulate && process.platform === "linux" && process.getuid?.() === 0)
    return (await import("./launch/start.ts")).becomeSupervisor(config, environment, places);
  const log = createLog(config.logLevel);
  const { openNameserver, withNameserver } = await import("./nameserver.ts");
  const nameserver = openNameserver(config, config.dataFolder, log);
  return withNameserver(nameserver, async () => {
    const [{ startService }, { readTls }, { stampOf, watchFiles }] = await Promise.all([
      import("./start.ts"),
      import("./launch/tls.ts"),
      import("./launch/tlsfiles.ts"),
    ]);
    const stamp = config.tls && stampOf(config.tls);
    const tls = config.tls && (await readTls(config.tls));
    return startService(config, {
      log,
      folder: config.dataFolder,
      tls,
      onTls(listener) {
        if (config.tls !== null && stamp !== null)
          watchFiles(config.tls, stamp, listener, (reason) =>
            log("warn", "The certificate of the API has changed and could not be read.", { reason }),
          );
      },
      introduces: true,
      settings: showSettings(environment, places),
      nameserver,
      // Loaded when it is called: DNS does not wait for the drivers of the host.
      openHost: async () => (await import("./host.ts")).openHost(config, log),
    });
  });
}

try {
  await start();
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
