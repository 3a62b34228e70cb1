/**
 * The host agent as a server: it carries the driver interfaces over HTTP, on a Unix socket for the control plane of this host, or on TLS
 * with certificates of both sides for one on another host. It keeps no state but the fence and, in memory, the last events.
 */
import { randomUUID } from "node:crypto";
import { chmodSync, chownSync, rmSync } from "node:fs";
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Log } from "../base/log.ts";
import { bindVerbs, type Refuse } from "./bound.ts";
import { type CallLimits, createCalls, defaultLimits } from "./calls.ts";
import type { Drivers } from "./contract/contract.ts";
import type { Description, Welcome } from "./contract/session.ts";
import { protocol } from "./contract/verb.ts";
import { createEventLog } from "./events.ts";
import { createFence, type FenceStore } from "./fence.ts";
import { createHandler } from "./handler.ts";
import { mismatch } from "./head.ts";
import { loadPeer } from "./peer.ts";
import { createPlain } from "./plain.ts";
import { type Identity, serverOptions } from "./tls.ts";

/** Options of `createAgent`. */
export interface AgentOptions {
  readonly drivers: Drivers;
  readonly description: Description;
  /** Release of the agent, for the error when versions differ. */
  readonly release: string;
  readonly log: Log;
  /** Returns the device of a port. Default: the machine driver's, as on every real host. */
  readonly deviceOf?: (nic: number) => string;
  /** Refuses an input that is not of this installation. */
  readonly refuse?: Refuse;
  /** Keeps the fence number over restarts. */
  readonly fence?: FenceStore;
  readonly limits?: Partial<CallLimits>;
}

/** Serves the drivers of this host to one control plane. */
export interface AgentServer {
  /**
   * Listens on a Unix socket with mode 600. `owner`: user and group of the control plane; only it and root can connect. An old socket at
   * the path is replaced.
   */
  listenUnix(path: string, owner?: { readonly uid: number; readonly gid: number }): Promise<void>;
  /** Listens with TLS 1.3. Only a control plane with a certificate of the same authority can connect. Resolves to the port. */
  listenTls(host: string, port: number, identity: Identity): Promise<number>;
  /** Uses other certificates and revocations from now on. Ends all TLS connections, which must prove themselves again. */
  renewTls(identity: Identity): void;
  /** Stops accepting calls, and waits `graceMs` milliseconds for running ones. The drivers stay open. */
  close(graceMs?: number): Promise<void>;
}

/** Connections of one agent. */
const mostConnections = 1024;
const listenOptions = {
  maxHeaderSize: 16_384,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  // Idle connections stay open: a new one costs more than the call.
  keepAliveTimeout: 0,
} as const;

/** Creates the agent. It does not listen yet. */
export function createAgent(options: AgentOptions): AgentServer {
  const { drivers, description, release, log, refuse = () => null } = options;
  const { deviceOf = (nic: number) => drivers.machines.deviceOf(nic) } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const fence = createFence(log, options.fence);
  const calls = createCalls(limits, () => performance.now());
  fence.onRaise(calls.fenceOff);
  const events = createEventLog(drivers.machines, randomUUID());

  const session = {
    async hello(theirs: number, _release: string, wanted: number | null): Promise<Welcome> {
      if (theirs !== protocol) throw mismatch(theirs, release);
      if (wanted !== null) fence.pass(wanted);
      return { protocol, release, epoch: events.epoch, fence: wanted ?? fence.next(), description };
    },
    cancel: async (id: string): Promise<void> => calls.cancel(id),
  };
  const verbs = bindVerbs({ targets: { ...drivers, session }, deviceOf, refuse, plain: createPlain(log) });
  const handler = createHandler({ verbs, fence, calls, events, limits, release, log });
  const servers = new Set<Server>();
  const tlsServers = new Set<TlsServer>();
  /** All connections to them, also those without a handshake, which would be made with the certificates of their begin. */
  const tlsConnections = new Set<Socket>();

  function prepare(server: Server | TlsServer): void {
    server.maxConnections = mostConnections;
    server.on("upgrade", handler.upgrade);
    server.on("clientError", (_error, socket) => socket.destroy());
    servers.add(server);
  }
  const listen = (server: Server, ...where: [string] | [number, string]): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(...(where as [string]), () => {
        server.off("error", reject);
        resolve();
      });
    });

  return {
    async listenUnix(path, owner) {
      const allowed = new Set([0, process.getuid?.() ?? 0, ...(owner === undefined ? [] : [owner.uid])]);
      const readPeer = await loadPeer().catch((error: unknown) => {
        log("info", "The identity of processes at the agent's socket is not read; its mode is the only check.", {
          error,
        });
        return null;
      });
      const server = createHttpServer(listenOptions, handler.request);
      prepare(server);
      server.on("connection", (socket: Socket) => {
        if (readPeer === null) return;
        const peer = readPeer(socket);
        if (allowed.has(peer.uid)) return;
        log("warn", "The host agent refused a process of another user.", { peer });
        socket.destroy();
      });
      rmSync(path, { force: true });
      // Node binds the socket before `listen` returns, so it never has another mode.
      const mask = process.umask(0o177);
      const listening = listen(server, path);
      process.umask(mask);
      await listening;
      chmodSync(path, 0o600);
      if (owner !== undefined) chownSync(path, owner.uid, owner.gid);
    },
    async listenTls(host, port, identity) {
      const server = createTlsServer({ ...listenOptions, ...serverOptions(identity) }, handler.request);
      prepare(server);
      server.on("connection", (socket: Socket) => {
        tlsConnections.add(socket);
        socket.once("close", () => tlsConnections.delete(socket));
      });
      tlsServers.add(server);
      await listen(server, port, host);
      return (server.address() as AddressInfo).port;
    },
    renewTls(identity) {
      for (const server of tlsServers) server.setSecureContext(serverOptions(identity));
      for (const socket of tlsConnections) socket.destroy();
    },
    async close(graceMs = 0) {
      for (const server of servers) server.close();
      const end = performance.now() + graceMs;
      while (calls.count > 0 && performance.now() < end) await new Promise((done) => setTimeout(done, 20));
      calls.stop();
      events.close();
      handler.endStreams(() => true);
      for (const server of servers) server.closeAllConnections();
    },
  };
}
