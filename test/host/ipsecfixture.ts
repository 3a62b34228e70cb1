/** Test fixture of the IPsec tests: a driver, a peer with an independent strongSwan, and two tunnels between them. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Child, exec } from "../../service/src/drivers/exec.ts";
import type { IpsecTunnel, TunnelStatus } from "../../service/src/drivers/router/interface.ts";
import { createIpsec, type Ipsec } from "../../service/src/drivers/router/ipsec/ipsec.ts";
import { connectVici, type Message, sections, text } from "../../service/src/drivers/router/ipsec/vici.ts";
import { findDaemons } from "../../service/src/drivers/router/linux/daemon.ts";
import { renderPeerConfig } from "../../service/src/drivers/router/model/peerconfig.ts";
import { whyNot } from "../support/hindrance.ts";
import { ipsecTunnel } from "../support/tunnelspec.ts";
import { until } from "../support/waituntil.ts";
import { type FarStrongswan, startStrongswan } from "./strongswan.ts";
import { createVpnFixture, type VpnFixture } from "./vpnfixture.ts";

/** The reason why the tests cannot run here; false: they can. */
export const skip = whyNot("ip", "charon-systemd", "swanctl", "ping");
export const key = "Very-Secret-Key-0123456789-abcdef";

export const tunnel = ipsecTunnel();
/** The tunnel to the other network behind the peer, which has a second address for it. */
export const second: IpsecTunnel = {
  ...tunnel,
  id: 8,
  sharedKey: "Another-Secret-Key-0123456789-abcd",
  peerSubnets: ["10.24.3.0/24"],
  peer: "192.0.2.3",
  peerIdentity: "192.0.2.3",
};

/** The peer configuration of each tunnel, with the key filled in. */
export const farText = (...tunnels: readonly IpsecTunnel[]): string =>
  tunnels
    .map((each) => {
      const text = renderPeerConfig(each, { address: "192.0.2.1", wireguard: null });
      assert.ok(text !== null && !text.includes(each.sharedKey));
      return text.replace("<SharedKey>", each.sharedKey);
    })
    .join("");

export interface IpsecFixture {
  readonly fixture: VpnFixture;
  readonly far: FarStrongswan;
  /** The address of every host name; "": none resolves. */
  readonly names: { address: string };
  apply(...tunnels: readonly IpsecTunnel[]): Promise<void>;
  remove(): Promise<void>;
  /** Replaces the driver by a new one, as after a restart of the service. */
  restart(): void;
  statusOf(id?: number): Promise<TunnelStatus>;
  isUp(id?: number): Promise<TunnelStatus>;
  /** Returns the process of the driver's charon. */
  daemon(): Promise<Child>;
  /** The SPI of a tunnel: it changes when the tunnel is established again. */
  association(id: number): Promise<string>;
  /** Removes the tunnels at both ends. */
  reset(): Promise<void>;
  end(): Promise<void>;
}

/** `retryAfter`: milliseconds between attempts. */
export async function createIpsecFixture(retryAfter = 500): Promise<IpsecFixture> {
  const fixture = await createVpnFixture();
  const far = await startStrongswan(fixture);
  const names = { address: "192.0.2.2" };
  const create = (): Ipsec =>
    createIpsec({
      exec,
      runFolder: fixture.folder,
      kernelEsp: false,
      now: Date.now,
      random: randomBytes,
      lookup: async () => {
        if (names.address === "") throw new Error("ENOTFOUND");
        return names.address;
      },
      retryAfter,
      // Unit tests check the limit; a busy host must not reach it here.
      handshakeLimit: 60_000,
      log: () => {},
    });
  let ipsec = create();
  const statusOf = async (id = 7): Promise<TunnelStatus> => {
    const found = (await ipsec.observe()).get(fixture.here.namespace)?.find((status) => status.id === id);
    assert.ok(found, `tunnel ${id} has no status`);
    return found;
  };
  const isUp = (id = 7, limit?: number): Promise<TunnelStatus> => {
    let last: TunnelStatus | undefined;
    return until(
      `tunnel ${id} up`,
      async () => {
        last = await statusOf(id);
        return last.state === "up" && last;
      },
      limit,
    ).catch((error: unknown) => {
      throw new Error(`${(error as Error).message}; last seen ${JSON.stringify(last)}`);
    });
  };
  const daemon = async () => {
    const found = await findDaemons(exec, fixture.here.namespace, "charon-systemd");
    assert.equal(found.length, 1);
    const [child] = found;
    assert.ok(child);
    return child;
  };

  const association = async (id: number): Promise<string> => {
    const vici = await connectVici(join(fixture.folder, fixture.here.namespace, "ipsec", "charon.vici"));
    try {
      const [found] = await vici.stream("list-sas", "list-sa", { ike: `t-${id}` });
      const [[, ike] = []] = sections(found);
      const [[, child] = []] = sections(ike?.["child-sas"] as Message);
      return text(child, "spi-in");
    } finally {
      vici.close();
    }
  };

  const remove = (): Promise<void> => ipsec.remove(fixture.here.namespace);
  return {
    fixture,
    far,
    names,
    apply: (...tunnels) => ipsec.apply(fixture.here.edge, tunnels),
    remove,
    restart() {
      ipsec.close();
      ipsec = create();
    },
    statusOf,
    isUp,
    daemon,
    association,
    async reset() {
      await remove();
      await far.terminate("brume-7");
      await far.terminate("brume-8");
    },
    async end() {
      ipsec.close();
      await fixture.end();
    },
  };
}
