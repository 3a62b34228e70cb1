/**
 * Test fixture: Brume as an operator runs it, with the real router driver in a process that can be killed, in a namespace
 * that serves as the host. A proxy that outlives the process makes its API reachable on loopback here.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PublicNetwork } from "@brume/api/network.ts";
import { exec } from "../../service/src/drivers/exec.ts";
import { createIpsec } from "../../service/src/drivers/router/ipsec/ipsec.ts";
import { createLinux } from "../../service/src/drivers/router/linux/linux.ts";
import { ipsecTunnels, wireguardTunnels } from "../../service/src/drivers/router/linux/tunnels.ts";
import { namespaceOf, tagOf } from "../../service/src/drivers/router/model/name.ts";
import { createWireguard } from "../../service/src/drivers/router/wireguard/wireguard.ts";
import { listNetworkStates } from "../../service/src/network/aggregate.ts";
import * as linkTable from "../../service/src/network/linktable.ts";
import { showNetwork } from "../../service/src/network/model/show.ts";
import * as table from "../../service/src/network/table.ts";
import type { Store } from "../../service/src/store/db.ts";
import { databaseName, openSqlite } from "../../service/src/store/sqlite.ts";
import { copyAccelerator } from "../support/machinelab.ts";
import { createLab, type Lab } from "../support/netnslab.ts";
import { createProcess, type Process } from "../support/process.ts";
import { announce, createServer as createGuest, link, pool, type Server } from "./routerfixture.ts";
import { startIn } from "./spaceprocess.ts";

export interface NetworkProcess {
  readonly lab: Lab;
  readonly brume: Process;
  edgeOf(network: number): string;
  /** Returns everything of Brume that is on the host, as text. */
  host(): Promise<string>;
  /** Runs `work` on the database while the service is stopped. */
  withStore<T>(work: (store: Store) => Promise<T>): Promise<T>;
  /** Connects a server while the service is stopped. */
  plug(network: PublicNetwork): Promise<Server>;
  /** Removes the servers of all networks while the service is stopped. */
  unplugAll(): Promise<void>;
  /** Stops the service without cleaning up the host. */
  shut(): void;
  close(): Promise<void>;
}

/** The proxy: forwards connections to a port of loopback here to the same port in the namespace. */
export async function openProxy(lab: Lab): Promise<{ readonly port: number; close(): void }> {
  const script = `const n=require("node:net");n.createServer(s=>{const t=n.connect(+process.argv[1],"127.0.0.1");
s.on("error",()=>t.destroy()).on("close",()=>t.destroy());t.on("error",()=>s.destroy()).on("close",()=>s.destroy());s.pipe(t).pipe(s)})
.listen(process.argv[2],()=>console.log("open"))`;
  const server = createServer((socket) => {
    const upstream = connect(path);
    socket.on("error", () => upstream.destroy()).on("close", () => upstream.destroy());
    upstream.on("error", () => socket.destroy()).on("close", () => socket.destroy());
    socket.pipe(upstream).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const path = `${join(lab.runFolder, "door")}${port}`;
  const inner = startIn(lab.machine, [process.execPath, "-e", script, String(port), path]);
  await inner.line();
  return {
    port,
    close() {
      inner.end();
      server.close();
    },
  };
}

/** `beside`: a second installation on the host of another, with its own settings; it is not started yet. */
export async function createNetworkProcess(beside?: {
  readonly lab: Lab;
  readonly folder?: string;
  readonly environment: Readonly<Record<string, string>>;
}): Promise<NetworkProcess> {
  const lab = beside?.lab ?? (await createLab());
  const folder = beside?.folder ?? mkdtempSync(join(tmpdir(), "brp-"));
  copyAccelerator(folder);
  const tag = tagOf(folder);
  const runFolder = `/run/brume-${tag}`;
  const proxy = await openProxy(lab);
  const brume = await createProcess("sqlite", {
    folder,
    // Only the network namespace differs. Mounts are shared, so namespaces created there are visible here.
    prefix: `exec nsenter --net=/run/netns/${lab.machine} "$0" "$@";`,
    environment: {
      BRUME_LISTEN: `127.0.0.1:${proxy.port}`,
      BRUME_PUBLIC_POOL: pool,
      BRUME_SIMULATE: "0",
      // It is started many times.
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? join(lab.runFolder, "compiled"),
      ...beside?.environment,
    },
    stopped: beside !== undefined,
  });

  async function host(): Promise<string> {
    const inMachine = (...argv: readonly string[]) => lab.run(lab.machine, argv);
    const names = async () => (await inMachine("ip", "-br", "link")).replaceAll(/^(\S+?)(@\S+)?\s.*$/gm, "$1");
    const ours = (list: readonly string[]) =>
      list.filter((name) => name.includes(`brume-${tag}`) || name.startsWith(`b${tag}`));
    const [links, four, six, rules, processes] = await Promise.all([
      names(),
      inMachine("ip", "route"),
      inMachine("ip", "-6", "route"),
      inMachine("nft", "-s", "list", "ruleset"),
      exec.run(["ps", "-eo", "args"]),
    ]);
    const read = (path: string, recursive = false): string[] => {
      try {
        return readdirSync(path, { recursive, encoding: "utf8" }).sort();
      } catch {
        return [];
      }
    };
    return JSON.stringify(
      {
        links: links.split("\n").sort(),
        routes: [four, six].map((text) => text.split("\n").sort()),
        rules: rules.split(/^(?=table )/m).filter((each) => !each.startsWith("table inet watch ")),
        namespaces: ours(read("/run/netns")).sort(),
        processes: processes
          .split("\n")
          .filter((line) => line.includes(`brume-${tag}`) || line.includes(`b${tag}`))
          .sort(),
        files: read(runFolder, true).filter((name) => !/\.log$|leases$/.test(name)),
        sockets: ours(read("/var/run/wireguard")),
      },
      null,
      1,
    );
  }

  const withStore: NetworkProcess["withStore"] = async (work) => {
    const store = await openSqlite(join(folder, databaseName), { log: () => {} });
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };

  return {
    lab,
    brume,
    edgeOf: (network) => namespaceOf(tag, network),
    host,
    withStore,
    plug: (network) =>
      withStore(async (store) => {
        const row = await link(store, network.Id);
        const of = await table.findNetwork(store.read, network.Id);
        const linked = of && showNetwork(of, [row]).LinkedServers[0];
        if (linked === undefined) throw new Error(`network ${network.Id} does not exist`);
        const guest = await createGuest(lab, tag, network, linked);
        await announce(store, network.Id);
        return { ...guest, link: linked, ip: linked.IP, ip6: linked.IP6 };
      }),
    unplugAll: () =>
      withStore(async (store) => {
        for (const { id } of await listNetworkStates(store.read))
          for (const each of await linkTable.listLinks(store.read, id)) {
            await store.write((tx) => linkTable.deleteLink(tx, each.id));
            await announce(store, id);
          }
      }),
    shut: () => proxy.close(),
    async close() {
      await brume.close();
      proxy.close();
      const options = { exec, runFolder, now: Date.now, lookup: async (name: string) => name, log: () => {} };
      const { kernelEsp } = lab.capabilities;
      const ipsec = createIpsec({ ...options, kernelEsp, random: (bytes) => new Uint8Array(bytes) });
      const last = createLinux({
        exec,
        opened: [],
        tag,
        hostNamespace: lab.machine,
        runFolder,
        capabilities: lab.capabilities,
        tunnels: [ipsecTunnels(ipsec), wireguardTunnels(createWireguard(options))],
        now: Date.now,
      });
      for (const { id } of (await last.observe()).networks) await last.remove(id);
      await exec.run(["ip", "netns", "del", `brume-${tag}_try`]).catch(() => {});
      await last.close();
      rmSync(runFolder, { recursive: true, force: true });
      rmSync(folder, { recursive: true, force: true });
      if (beside === undefined) await lab.close();
    },
  };
}
