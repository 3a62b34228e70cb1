/** How to get each code that has to do with servers: the part of the table of `codes.test.ts` that needs some of them. */
import type { ErrorCode } from "@brume/api/errors.ts";
import type { Stage, TestResponse } from "../support/harness.ts";

/** A server that is on, with 10 GB and 512 MB, and an image of its disk. */
export interface ServerScene {
  readonly stage: Stage;
  readonly server: number;
  readonly image: number;
  /** The network that it is in, and its address there. */
  readonly shared: number;
  readonly address: string;
}

type Produce = (scene: ServerScene) => Promise<TestResponse>;

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
>;

export async function openServerScene(stage: Stage): Promise<ServerScene> {
  const made = await stage.client.createServer({ body: { Name: "codes" } }, { wait: 20 });
  const image = await stage.client.createImage({ body: { Name: "codes", ServerID: made.ID } }, { wait: 20 });
  const shared = made.LinkedNetworks[0]?.NetworkID ?? 0;
  return { stage, server: made.ID, image: image.ID, shared, address: made.IP };
}

const asks =
  (line: string, body?: object): Produce =>
  ({ stage, server }) =>
    stage.ask(line.replace(":server", String(server)), body);

const creates =
  (more: (scene: ServerScene) => object): Produce =>
  (scene) =>
    scene.stage.ask("POST /server", { Name: "refused", ...more(scene) });

/** Milliseconds: longer than all that is asked meanwhile, and nobody waits for it. */
const long = 5000;

/** While a server is being made. */
async function whileBusy(
  { stage }: ServerScene,
  work: (server: number) => Promise<TestResponse>,
): Promise<TestResponse> {
  const { machines } = stage.world;
  machines.delay("ensureDisk", long);
  const { ID } = await stage.client.createServer({ body: { Name: "busy" } });
  const response = await work(ID);
  machines.delay("ensureDisk", 0);
  return response;
}

async function inSmallNetwork({ stage }: ServerScene): Promise<TestResponse> {
  const { ID } = await stage.client.createNetwork({ body: { Name: "small", CIDR: "192.168.77.0/29" } });
  for (;;) {
    const response = await stage.ask("POST /server", { Name: "crowd", NetworkID: ID });
    if (response.status !== 200) return response;
  }
}

async function intoTwins({ stage, server }: ServerScene): Promise<TestResponse> {
  const twin = { Name: "twin", CIDR: "192.168.78.0/24" };
  const [one, other] = [
    await stage.client.createNetwork({ body: twin }),
    await stage.client.createNetwork({ body: twin }),
  ];
  const path = { id: server };
  await stage.client.startAction({ path, body: { Type: "AddNetwork", NetworkID: one.ID } });
  return stage.ask(`POST /server/${server}/action`, { Type: "AddNetwork", NetworkID: other.ID });
}

async function intoDeleted({ stage }: ServerScene): Promise<TestResponse> {
  const { Id } = await stage.client.createPublicNetwork({ body: { Name: "going" } });
  stage.world.router.broken = true;
  await stage.ask(`DELETE /publicnetwork/${Id}`, undefined, { Prefer: "wait=0" });
  const response = await stage.ask("POST /server", { Name: "late", NetworkID: Id });
  stage.world.router.broken = false;
  return response;
}

async function fromUnfinished({ stage, server }: ServerScene): Promise<TestResponse> {
  stage.world.machines.delay("ensureImage", long);
  const { ID } = await stage.client.createImage({ body: { Name: "unfinished", ServerID: server } });
  const response = await stage.ask("POST /server", { Name: "early", ImageID: ID });
  stage.world.machines.delay("ensureImage", 0);
  return response;
}

export const serverCodes: Record<ServerCode, Produce> = {
  disk_cannot_shrink: asks("PUT /server/:server", { HDD: 9 }),
  disk_too_small: creates(({ image }) => ({ ImageID: image, HDD: 9 })),
  location_mismatch: creates(({ image }) => ({ ImageID: image, DCLocation: "Far" })),
  not_linked: asks("POST /server/:server/action", { Type: "RemoveNetwork", NetworkID: 99_999 }),
  batch_form_invalid: asks("POST /server-batch", { Name: "none" }),
  stock_image: asks("DELETE /image/1"),
  server_not_found: asks("GET /server/99999"),
  action_not_found: asks("GET /server/:server/action/99999"),
  batch_not_found: asks("DELETE /server-batch", { ID: 99_999 }),
  image_not_found: asks("GET /image/99999"),
  server_busy: (scene) =>
    whileBusy(scene, (id) => scene.stage.ask(`POST /server/${id}/action`, { Type: "PowerOff", OnBusy: "Fail" })),
  queue_full: (scene) =>
    whileBusy(scene, async (id) => {
      for (;;) {
        const response = await scene.stage.ask(`POST /server/${id}/action`, { Type: "PowerOn" });
        if (response.status !== 200) return response;
      }
    }),
  async server_protected({ stage }) {
    const { ID } = await stage.client.createServer({ body: { Name: "safe", IsProtected: true } });
    return stage.ask(`DELETE /server/${ID}`);
  },
  restart_needed: asks("PUT /server/:server", { RAM: 256, AllowRestart: false }),
  image_not_ready: fromUnfinished,
  already_linked: ({ stage, server, shared }) =>
    stage.ask(`POST /server/${server}/action`, { Type: "AddNetwork", NetworkID: shared }),
  range_overlap: intoTwins,
  address_taken: creates(({ address }) => ({ NetworkIP: address })),
  network_full: inSmallNetwork,
  network_deleting: intoDeleted,
  async no_capacity({ stage }) {
    await stage.client.updateProject({ path: { id: 1 }, body: { Quotas: { RAM: 2_147_483_647 } } });
    return stage.ask("POST /server", { Name: "vast", RAM: 1_048_576 });
  },
};
