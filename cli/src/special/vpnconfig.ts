/** `brume vpn config`: the configuration of the peer of a tunnel, as a file or as a QR code. */
import { UsageError } from "../model/values.ts";
import { confirm } from "../perform.ts";
import { resolve } from "../resolve.ts";
import { idArgument, isOn, type Run, type Session, textFlag } from "../session.ts";

/** Returns the tunnel of the line, or the only one of the network. */
async function findTunnel(session: Session, network: number): Promise<number> {
  const text = session.line.args[1];
  if (text !== undefined) return resolve(await session.any(), "tunnel", text, network);
  const client = await session.client();
  const { Vpn } = await client.readPublicNetwork({ path: { id: network } }, { signal: session.host.signal });
  const [only] = Vpn.Tunnels;
  if (only !== undefined && Vpn.Tunnels.length === 1) return only.Id;
  const names = Vpn.Tunnels.map(({ Name }) => Name).join(", ");
  throw new UsageError(
    only === undefined ? "The network has no tunnel." : `The network has ${Vpn.Tunnels.length} tunnels: ${names}.`,
    only === undefined ? "brume vpn set NETWORK --tunnels … creates one." : "Name one of them after the network.",
  );
}

export const run: Run = async (session) => {
  const { host, print, line } = session;
  const client = await session.client();
  const id = await idArgument(session, 0);
  const input = {
    path: { id, tunnelId: await findTunnel(session, id) },
    query: textFlag(session, "peer") === undefined ? {} : { peer: textFlag(session, "peer") as "wg-quick" },
  };
  const issues = isOn(session, "issue");
  if (issues)
    await confirm(
      session,
      `Issue a configuration of ${line.args.join(" ")}: a connected WireGuard peer is disconnected`,
    );
  const found = issues
    ? await client.issueTunnelPeer(input, { wait: 30, signal: host.signal })
    : await client.readTunnelPeer(input, { signal: host.signal });
  if (!issues && /<(SharedKey|private key)>/.test(found.Config))
    print.note("The configuration has placeholders instead of secrets. --issue fills them in.");
  if (!isOn(session, "qr"))
    return session.options.output === "table"
      ? host.out.write(found.Config.replace(/\n?$/, "\n"))
      : print.result(found, "", true);
  const { renderUnicodeCompact } = await import("uqr");
  host.out.write(`${renderUnicodeCompact(found.Config, { ecc: "L", border: 2 })}\n`);
};
