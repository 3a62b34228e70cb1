/** Requests that produce the error codes of servers, for `codes.test.ts`. */
import type { ErrorCode } from "@brume/api/errors.ts";
import type { Harness, TestResponse } from "../support/harness.ts";

/** A running server with 10 GB and 512 MB, and an image of its disk. */
export interface ServerErrorFixture {
  readonly harness: Harness;
  readonly server: number;
  readonly image: number;
  /** Network of the server. */
  readonly shared: number;
  readonly address: string;
}

type Produce = (fixture: ServerErrorFixture) => Promise<TestResponse>;

export type ServerCode = Extract<
  ErrorCode,
  | "disk_cannot_shrink"
  | "disk_too_small"
  | "location_mismatch"
  | "not_linked"
  | "batch_form_invalid"
  | "stock_image"
  | "server_not_found"
  | "action_not_found"
  | "batch_not_found"
  | "image_not_found"
  | "server_busy"
  | "queue_full"
  | "server_protected"
  | "restart_needed"
  | "image_not_ready"
  | "already_linked"
  | "range_overlap"
  | "address_taken"
  | "network_full"
  | "network_deleting"
  | "no_capacity"
  | "content_range_invalid"
  | "upload_conflict"
>;

export async function openServerErrorFixture(harness: Harness): Promise<ServerErrorFixture> {
  const made = await harness.client.createServer({ body: { Name: "codes" } }, { wait: 60 });
  const image = await harness.client.createImage({ body: { Name: "codes", ServerID: made.ID } }, { wait: 60 });
  const shared = made.LinkedNetworks[0]?.NetworkID ?? 0;
  return { harness, server: made.ID, image: image.ID, shared, address: made.IP };
}

const request =
  (line: string, body?: object): Produce =>
  ({ harness, server }) =>
    harness.request(line.replace(":server", String(server)), body);

const creates =
  (more: (fixture: ServerErrorFixture) => object): Produce =>
  (fixture) =>
    fixture.harness.request("POST /server", { Name: "refused", ...more(fixture) });

/** Sends a request while a server is being created. */
async function whileBusy(
  { harness }: ServerErrorFixture,
  work: (server: number) => Promise<TestResponse>,
): Promise<TestResponse> {
  const { machines } = harness.brume;
  const release = machines.hold("ensureDisk");
  const { ID } = await harness.client.createServer({ body: { Name: "busy" } });
  const response = await work(ID);
  release();
  return response;
}

async function inSmallNetwork({ harness }: ServerErrorFixture): Promise<TestResponse> {
  const { ID } = await harness.client.createNetwork({ body: { Name: "small", CIDR: "192.168.77.0/29" } });
  for (;;) {
    const response = await harness.request("POST /server", { Name: "crowd", NetworkID: ID });
    if (response.status !== 200) return response;
  }
}

async function intoOverlapping({ harness, server }: ServerErrorFixture): Promise<TestResponse> {
  const overlapping = { Name: "twin", CIDR: "192.168.78.0/24" };
  const [one, other] = [
    await harness.client.createNetwork({ body: overlapping }),
    await harness.client.createNetwork({ body: overlapping }),
  ];
  const path = { id: server };
  await harness.client.startAction({ path, body: { Type: "AddNetwork", NetworkID: one.ID } });
  return harness.request(`POST /server/${server}/action`, { Type: "AddNetwork", NetworkID: other.ID });
}

async function intoDeleted({ harness }: ServerErrorFixture): Promise<TestResponse> {
  const { Id } = await harness.client.createPublicNetwork({ body: { Name: "going" } });
  harness.brume.router.broken = true;
  await harness.request(`DELETE /publicnetwork/${Id}`, undefined, { Prefer: "wait=0" });
  const response = await harness.request("POST /server", { Name: "late", NetworkID: Id });
  harness.brume.router.broken = false;
  return response;
}

async function fromUnfinished({ harness, server }: ServerErrorFixture): Promise<TestResponse> {
  const release = harness.brume.machines.hold("ensureImage");
  const { ID } = await harness.client.createImage({ body: { Name: "unfinished", ServerID: server } });
  const response = await harness.request("POST /server", { Name: "early", ImageID: ID });
  release();
  return response;
}

/** Sends content of an upload of 8 bytes. */
const content =
  (range: string): Produce =>
  async ({ harness }) => {
    const { ID } = await harness.client.createImage({ body: { Name: "sent", Size: 8 } });
    return harness.request(`PUT /image/${ID}/content`, "1234", { "Content-Range": range });
  };

export const serverCodes: Record<ServerCode, Produce> = {
  disk_cannot_shrink: request("PUT /server/:server", { HDD: 9 }),
  disk_too_small: creates(({ image }) => ({ ImageID: image, HDD: 9 })),
  location_mismatch: creates(({ image }) => ({ ImageID: image, DCLocation: "Far" })),
  not_linked: request("POST /server/:server/action", { Type: "RemoveNetwork", NetworkID: 99_999 }),
  batch_form_invalid: request("POST /server-batch", { Name: "none" }),
  stock_image: request("DELETE /image/1"),
  server_not_found: request("GET /server/99999"),
  action_not_found: request("GET /server/:server/action/99999"),
  batch_not_found: request("DELETE /server-batch", { ID: 99_999 }),
  image_not_found: request("GET /image/99999"),
  server_busy: (fixture) =>
    whileBusy(fixture, (id) =>
      fixture.harness.request(`POST /server/${id}/action`, { Type: "PowerOff", OnBusy: "Fail" }),
    ),
  queue_full: (fixture) =>
    whileBusy(fixture, async (id) => {
      for (;;) {
        const response = await fixture.harness.request(`POST /server/${id}/action`, { Type: "PowerOn" });
        if (response.status !== 200) return response;
      }
    }),
  async server_protected({ harness }) {
    const { ID } = await harness.client.createServer({ body: { Name: "safe", IsProtected: true } });
    return harness.request(`DELETE /server/${ID}`);
  },
  restart_needed: request("PUT /server/:server", { RAM: 256, AllowRestart: false }),
  image_not_ready: fromUnfinished,
  already_linked: ({ harness, server, shared }) =>
    harness.request(`POST /server/${server}/action`, { Type: "AddNetwork", NetworkID: shared }),
  range_overlap: intoOverlapping,
  address_taken: creates(({ address }) => ({ NetworkIP: address })),
  network_full: inSmallNetwork,
  network_deleting: intoDeleted,
  content_range_invalid: content("bytes 0-4/8"),
  upload_conflict: content("bytes 4-7/8"),
  async no_capacity({ harness }) {
    await harness.client.updateProject({ path: { id: 1 }, body: { Quotas: { RAM: 2_147_483_647 } } });
    return harness.request("POST /server", { Name: "vast", RAM: 1_048_576 });
  },
};
