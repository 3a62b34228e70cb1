/**
 * The configuration protocol of user-space WireGuard (https://www.wireguard.com/xplatform/): lines `key=value` on a Unix socket; an empty
 * line ends a request and its response. Keys are hexadecimal here and base64 everywhere else. Only differences to the device's state are
 * sent, so that sessions of unchanged peers continue.
 */
import { connect } from "node:net";
import { formatAddresses, parseAddresses } from "../../../base/address.ts";

/** The configuration of a peer. */
export interface WireguardPeer {
  /** Base64 of 32 bytes, like all keys. */
  readonly publicKey: string;
  readonly presharedKey: string | null;
  /** `address:port`; null: the peer initiates the connection. */
  readonly endpoint: string | null;
  readonly keepAlive: number;
  readonly allowed: readonly string[];
}

/** The configuration of a device; with `PeerState` its actual state. */
export interface WireguardDevice<P = WireguardPeer> {
  readonly privateKey: string;
  readonly listenPort: number;
  readonly peers: readonly P[];
}

/** A peer of a running device; `received` and `sent` are bytes. */
export interface PeerState extends WireguardPeer {
  /** Milliseconds since 1970; null: never. */
  readonly lastHandshake: number | null;
  readonly received: number;
  readonly sent: number;
}

const noKey = "0".repeat(64);

/** Converts a key from base64 to hexadecimal. Throws unless it is base64 of 32 bytes; the error does not contain the key. */
export function hexOf(key: string): string {
  const bytes = Buffer.from(key, "base64");
  if (bytes.length !== 32 || bytes.toString("base64") !== key)
    throw new Error("a WireGuard key is not base64 of 32 bytes");
  return bytes.toString("hex");
}

const base64Of = (hex: string): string => Buffer.from(hex, "hex").toString("base64");

const blockOf = (text: string): string => {
  const block = formatAddresses(4, parseAddresses(text));
  return block.includes("/") ? block : `${block}/32`;
};

const sameSet = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((item) => b.includes(item));

function peerLines(desired: WireguardPeer, present: WireguardPeer | undefined): readonly string[] {
  const allowed = desired.allowed.map(blockOf);
  const lines: string[] = [];
  if (present === undefined && desired.presharedKey !== null)
    lines.push(`preshared_key=${hexOf(desired.presharedKey)}`);
  if (desired.endpoint !== null && present?.endpoint !== desired.endpoint) lines.push(`endpoint=${desired.endpoint}`);
  if ((present?.keepAlive ?? 0) !== desired.keepAlive) lines.push(`persistent_keepalive_interval=${desired.keepAlive}`);
  if (!sameSet(allowed, present?.allowed ?? []))
    lines.push("replace_allowed_ips=true", ...allowed.map((block) => `allowed_ip=${block}`));
  return lines.length > 0 || present === undefined ? [`public_key=${hexOf(desired.publicKey)}`, ...lines] : [];
}

/** Renders the request that changes `present` to `desired`; "" if nothing differs. Throws for an invalid key. */
export function renderDevice(desired: WireguardDevice, present: WireguardDevice): string {
  const lines: string[] = [];
  if (desired.privateKey !== present.privateKey) lines.push(`private_key=${hexOf(desired.privateKey)}`);
  if (desired.listenPort !== present.listenPort) lines.push(`listen_port=${desired.listenPort}`);
  // A session would outlive its preshared key for three minutes.
  const isSame = (one: WireguardPeer, other: WireguardPeer): boolean =>
    one.publicKey === other.publicKey && one.presharedKey === other.presharedKey;
  // First what goes: a block may have moved from one peer to another.
  for (const before of present.peers)
    if (!desired.peers.some((peer) => isSame(peer, before)))
      lines.push(`public_key=${hexOf(before.publicKey)}`, "remove=true");
  for (const peer of desired.peers)
    lines.push(
      ...peerLines(
        peer,
        present.peers.find((before) => isSame(before, peer)),
      ),
    );
  return lines.length === 0 ? "" : `set=1\n${lines.join("\n")}\n\n`;
}

/** Parses the response to `get=1`: the lines of the device precede those of the first peer. */
export function parseDevice(text: string): WireguardDevice<PeerState> {
  const [own = "", ...others] = text.split(/^(?=public_key=)/m);
  const valuesOf = (part: string, key: string): readonly string[] =>
    [...part.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map((match) => match[1] ?? "");
  const valueOf = (part: string, key: string): string => valuesOf(part, key)[0] ?? "";
  const keyOf = (part: string, key: string): string | null => {
    const hex = valueOf(part, key);
    return hex === "" || hex === noKey ? null : base64Of(hex);
  };
  return {
    privateKey: keyOf(own, "private_key") ?? "",
    listenPort: Number(valueOf(own, "listen_port")) || 0,
    peers: others.map((part) => ({
      publicKey: base64Of(valueOf(part, "public_key")),
      presharedKey: keyOf(part, "preshared_key"),
      endpoint: valueOf(part, "endpoint") || null,
      keepAlive: Number(valueOf(part, "persistent_keepalive_interval")) || 0,
      allowed: valuesOf(part, "allowed_ip"),
      lastHandshake: Number(valueOf(part, "last_handshake_time_sec")) * 1000 || null,
      received: Number(valueOf(part, "rx_bytes")) || 0,
      sent: Number(valueOf(part, "tx_bytes")) || 0,
    })),
  };
}

/** Largest response in characters: more than a device with any number of peers needs, which the API permits. */
const mostResponse = 16 * 2 ** 20;

/**
 * Sends a request to the device's socket and resolves to the response. Rejects when no process listens at `path`, on an errno, on a
 * response without end, and after `limit` milliseconds. Errors never contain the request.
 */
export function requestDevice(path: string, request: string, limit = 2000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const timer = setTimeout(() => socket.destroy(new Error(`no response within ${limit} ms`)), limit);
    let response = "";
    let failure: Error = new Error("the response ends too early");
    socket.setEncoding("utf8");
    socket.on("connect", () => socket.write(request));
    socket.on("data", (chunk: string) => {
      response += chunk;
      if (response.length > mostResponse) socket.destroy(new Error("the response has no end"));
      else if (response.endsWith("\n\n")) finish();
    });
    const finish = (): void => {
      const errno = /^errno=(-?\d+)$/m.exec(response)?.[1];
      if (errno === "0") resolve(response);
      else failure = new Error(`errno ${errno}`);
      socket.destroy();
    };
    socket.on("error", (error) => {
      failure = error;
    });
    socket.on("close", () => {
      clearTimeout(timer);
      reject(new Error(`WireGuard at ${path}: ${failure.message}`, { cause: failure }));
    });
  });
}

/** Calls `lost` once when the process that listens at `path` is gone or absent. Returns a function that stops watching. */
export function watchDevice(path: string, lost: () => void): () => void {
  const socket = connect(path);
  let watching = true;
  socket.on("error", () => {});
  socket.on("close", () => watching && lost());
  socket.unref();
  return () => {
    watching = false;
    socket.destroy();
  };
}
