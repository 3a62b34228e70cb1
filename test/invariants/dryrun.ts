/** Requests that change servers and networks and would succeed, for the invariant of dry runs. */
import type { OperationName } from "@brume/api/contract.ts";
import { deleteLink, listLinksOfServer } from "../../service/src/network/linktable.ts";
import { deleteServer } from "../../service/src/server/table.ts";
import type { Harness } from "../support/harness.ts";
import { openEndpoint } from "../support/webhookendpoint.ts";

/** `headers` with a cookie: the request has no token. */
type Request = readonly [target: string, body?: object, headers?: Readonly<Record<string, string>>];

const key = (byte: number) =>
  Buffer.concat([Buffer.from("\0\0\0\x0bssh-ed25519\0\0\0 "), Buffer.alloc(32, byte)]).toString("base64");

/** Creates the objects and returns the requests by operation. */
export async function prepareRequests({
  client,
  brume,
}: Pick<Harness, "client" | "brume">): Promise<Partial<Record<OperationName, Request>>> {
  const wait = { wait: 60 };
  const server = async (Name: string) => (await client.createServer({ body: { Name } }, wait)).ID;
  const [kept, doomed, switched] = [await server("kept"), await server("doomed"), await server("switched")];
  const batch = await client.createBatch({ body: { Name: "group", Count: 2 } }, wait);
  const image = await client.createImage({ body: { Name: "doomed", ServerID: kept } }, wait);
  const upload = await client.createImage({ body: { Name: "sent", Size: 1_000_000 } });
  const deletableKey = await client.createSshKey({ body: { Title: "doomed", PublicKey: key(1) } });
  const publicNetwork = async (Name: string) => (await client.createPublicNetwork({ body: { Name } }, wait)).Id;
  const [edge, doomedEdge] = [await publicNetwork("kept"), await publicNetwork("doomed")];
  const roaming = await publicNetwork("roaming");
  const phone = { Name: "phone", Type: "WireGuard", PeerNetwork: "10.9.0.2", Enabled: false } as const;
  const { Vpn } = await client.configureVpn({ path: { id: roaming }, body: { Tunnels: [phone] } }, wait);
  const inner = async (Name: string) => (await client.createNetwork({ body: { Name } }, wait)).ID;
  const [lan, doomedLan] = [await inner("kept"), await inner("doomed")];
  // A pending claim would be checked and written repeatedly.
  await client.createReservation({ body: { Name: "claims.example", ProjectID: 1 } });
  const claim = await client.createClaim({ body: { Name: "doomed.claims.example" } }, wait);
  const reserved = await client.createReservation({ body: { Name: "doomed-name.example" } });
  await brume.store.write(async (tx) => {
    const withdrawn = {
      id: 1_000_000,
      project_id: 1,
      name: "lost.example",
      ascii: "lost.example",
      date: Date.now(),
      record_count: 0,
    };
    await tx
      .insertInto("withdrawn_domain")
      .values({ ...withdrawn, reason: "", zone_file: "", labels: "{}" })
      .execute();
  });
  // A waiting action without the running one that it waits for, so that the database is calm.
  const waits = await server("waits");
  const ended = await client.startAction({ path: { id: waits }, body: { Type: "PowerOff" } }, wait);
  const action = 1_000_000;
  await brume.store.write(async (tx) => {
    const row = await tx.selectFrom("task").selectAll().where("id", "=", ended.ID).executeTakeFirstOrThrow();
    const records = (JSON.parse(row.steps) as object[]).map((one) => ({
      ...one,
      state: "Pending",
      start: null,
      end: null,
    }));
    const waiting = {
      state: "Postponed",
      progress: 0,
      end_date: null,
      due_at: null,
      steps: JSON.stringify(records),
    } as const;
    await tx
      .insertInto("task")
      .values({ ...row, ...waiting, id: action })
      .execute();
  });
  // Orphans: on the host, but not in the database, as after a restore.
  const lost = [await server("adopted"), await server("removed")];
  await brume.store.write(async (tx) => {
    for (const id of lost) {
      for (const link of await listLinksOfServer(tx, id)) await deleteLink(tx, link.id);
      await tx.deleteFrom("task").where("subject", "=", "server").where("subject_id", "=", id).execute();
      await deleteServer(tx, id);
    }
  });
  const orphans = await client.waitFor("listOrphans", {}, { until: (all) => all.length === 2, timeout: 120_000 });
  // Of a type that is not emitted here, so that deliveries change no rows.
  const endpoint = await openEndpoint();
  const hook = async () => (await client.createWebhook({ body: { Url: endpoint.url, Types: ["disk.low"] } })).ID;
  const [stopped, doomedHook] = [await hook(), await hook()];
  const session = await client.createSession({ body: {} });
  const signIn = { method: "POST", headers: { authorization: `Bearer ${brume.token}` } };
  const [cookie = ""] = (await fetch(`${brume.url}/session`, signIn)).headers.get("set-cookie")?.split(";") ?? [];
  const [event] = await client.listEvents({ query: { limit: 1 } });
  await brume.store.write(async (tx) => {
    const delivery = { event_id: event?.ID ?? 0, type: "disk.low", resource: "disk", resource_id: 1 };
    await tx
      .insertInto("webhook_delivery")
      .values({
        ...delivery,
        id: 1_000_000,
        webhook_id: stopped,
        state: "Failed",
        created: Date.now(),
        ended: Date.now(),
        due: null,
      })
      .execute();
  });
  return {
    adoptOrphan: [`/orphan/${orphans[0]?.ID}/adopt`, {}],
    deleteOrphan: [`/orphan/${orphans[1]?.ID}`],
    createSession: ["/session", {}],
    deleteSession: [`/session/${session.ID}`],
    deleteOwnSession: ["/session", {}, { cookie, "X-Brume-Console": "1" }],
    createDiskCopy: ["/disk-copy", { ServerID: kept }],
    deleteDiskCopies: ["/disk-copy"],
    createWebhook: ["/webhook", { Url: endpoint.url, Types: ["disk.low"] }],
    deleteWebhook: [`/webhook/${doomedHook}`],
    resendDelivery: [`/webhook/${stopped}/delivery/1000000/resend`],
    createClaim: ["/dns/claim", { Name: "dry.claims.example" }],
    deleteClaim: [`/dns/claim/${claim.ID}`],
    deleteWithdrawnDomain: ["/dns/withdrawn/1000000"],
    createReservation: ["/dns/reservation", { Name: "dry-name.example" }],
    deleteReservation: [`/dns/reservation/${reserved.ID}`],
    createServer: ["/server", { Name: "dry", Labels: { a: "b" } }],
    updateServer: [`/server/${kept}`, { Name: "renamed" }],
    deleteServer: [`/server/${doomed}`],
    copyServer: [`/server/${kept}/copy`, {}],
    rebuildServer: [`/server/${kept}/rebuild`, {}],
    startAction: [`/server/${switched}/action`, { Type: "PowerOff" }],
    cancelAction: [`/server/${waits}/action/${action}/cancel`],
    createBatch: ["/server-batch", { Name: "dry", Count: 2 }],
    deleteBatch: ["/server-batch", { ID: batch.ID }],
    openConsole: [`/server/${kept}/console`, { Type: "Serial" }],
    createSshKey: ["/sshkey", { Title: "dry", PublicKey: key(2) }],
    deleteSshKey: [`/sshkey/${deletableKey.ID}`],
    createImage: ["/image", { Name: "dry", ServerID: kept }],
    deleteImage: [`/image/${image.ID}`],
    writeImageContent: [`/image/${upload.ID}/content`, {}, { "Content-Range": "bytes 0-1/1000000" }],
    createPublicNetwork: ["/publicnetwork", { Name: "dry" }],
    updatePublicNetwork: [`/publicnetwork/${edge}`, { Bandwidth: 7 }],
    deletePublicNetwork: [`/publicnetwork/${doomedEdge}`],
    configureFirewall: [`/publicnetwork/${edge}/firewall`, { Enabled: true, Rules: [] }],
    configureVpn: [
      `/publicnetwork/${edge}/vpn`,
      {
        Tunnels: [
          {
            Name: "dry",
            PeerNetwork: "10.9.0.0/24",
            PeerEndpoint: "192.0.2.1",
            Enabled: false,
            SharedKey: "0123456789abcdef",
          },
        ],
      },
    ],
    issueTunnelPeer: [`/publicnetwork/${roaming}/vpn/${Vpn.Tunnels[0]?.Id}/peer`],
    createNetwork: ["/network", { Name: "dry" }],
    updateNetwork: [`/network/${lan}`, { Name: "renamed" }],
    deleteNetwork: [`/network/${doomedLan}`],
  };
}
