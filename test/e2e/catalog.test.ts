/**
 * The catalog of SSH keys, images and locations, over the API (docs/spec.md#image, #location,
 * #ssh-key, #image-location-key-and-private-network-endpoints).
 */
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";
import { before, describe, test } from "node:test";
import type { Image } from "@brume/api/catalog.ts";
import { syncOperatorImages } from "../../service/src/catalog/operatorimages.ts";
import type { OperatorImage } from "../../service/src/drivers/machine/interface.ts";
import { onSqlite, refused } from "../support/harness.ts";

const base64 = "AAAAC3NzaC1lZDI1NTE5AAAAIE3p6k3o0o3p0l7mYw2bq1Xn4rZ8t5v9cQ1sD2fG3hJ4";
const line = `ssh-ed25519 ${base64} ann@laptop`;

/** Returns a new public key. */
function freshLine(): string {
  const { x = "" } = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const point = Buffer.from(x, "base64url");
  const inside = Buffer.concat([Buffer.of(0, 0, 0, 11), Buffer.from("ssh-ed25519"), Buffer.of(0, 0, 0, 32), point]);
  return `ssh-ed25519 ${inside.toString("base64")}`;
}

const stock = (name: string, more: Partial<OperatorImage> = {}): OperatorImage => ({
  name,
  title: `The ${name}`,
  family: "Linux",
  os: "Debian",
  minRam: 256,
  hdd: 2,
  folder: name,
  guest: null,
  ...more,
});

onSqlite("the catalog", (harness) => {
  const post = (body: object | string, headers = {}) => harness.request("POST /sshkey", body, headers);
  const keyOf = async (Title: string) => harness.client.createSshKey({ body: { Title, PublicKey: freshLine() } });

  describe("SSH keys", () => {
    test("a key is shown with its parsed fields", async () => {
      const response = await post({ Title: "laptop", PublicKey: line, Labels: { of: "ann" } });
      assert.equal(response.status, 200, response.text);
      const hash = createHash("sha256").update(Buffer.from(base64, "base64")).digest("base64").replace(/=+$/, "");
      const { ID, DateCreate, ...rest } = response.json as Awaited<ReturnType<typeof harness.client.readSshKey>>;
      assert.deepEqual(rest, {
        Title: "laptop",
        PublicKey: base64,
        IsActive: true,
        Type: "ssh-ed25519",
        Comment: "ann@laptop",
        Fingerprint: `SHA256:${hash}`,
        Labels: { of: "ann" },
      });
      assert.deepEqual(await harness.client.readSshKey({ path: { id: ID } }), response.json);
      assert.match(response.text, new RegExp(`^\\{"ID":${ID},"Title":"laptop","PublicKey":"AAAA`));
      assert.ok(DateCreate);
    });

    test("the same title with the same key returns the existing key, with another key it is a conflict", async () => {
      const first = await harness.client.createSshKey({ body: { Title: "twice", PublicKey: line } });
      // Existing clients use other field names, send only the base64 part, or send a form.
      const form = new URLSearchParams({ Name: "twice", Value: base64 }).toString();
      const again = await post(form, { "Content-Type": "application/x-www-form-urlencoded" });
      assert.deepEqual(again.json, first);
      assert.equal((await post({ Title: "twice", PublicKey: freshLine() })).code, "title_taken");
      assert.equal((await post({ Title: "thrice", PublicKey: line })).status, 200);
    });

    test("an invalid key is rejected with the reason at its field", async () => {
      const response = await post({ PublicKey: `ssh-rsa ${base64}` });
      assert.equal(response.code, "validation_failed");
      const { errors } = response.json as { errors: { pointer: string; code: string; detail: string }[] };
      assert.deepEqual(
        errors.map(({ pointer, code }) => `${pointer} ${code}`),
        ["/Title field_required", "/PublicKey format_invalid"],
      );
      assert.match(
        errors[1]?.detail ?? "",
        /^PublicKey must have the type that it states: the encoded type is ssh-ed25519\.$/,
      );
    });

    test("the title of a deleted key can be used again", async () => {
      const key = await keyOf("short-lived");
      assert.equal(
        (await harness.request(`DELETE /sshkey/${key.ID}`, undefined, { "If-Match": '"sshkey-0-1"' })).code,
        "etag_mismatch",
      );
      await harness.client.deleteSshKey({ path: { id: key.ID } });
      await refused(harness.client.readSshKey({ path: { id: key.ID } }), "sshkey_not_found");
      await refused(harness.client.deleteSshKey({ path: { id: key.ID } }), "sshkey_not_found");
      const next = await keyOf("short-lived");
      assert.ok(next.ID > key.ID, "an id is never used again");
    });

    test("a dry run creates nothing", async () => {
      const response = await harness.request("POST /sshkey?dryRun=true", { Title: "dry", PublicKey: line });
      assert.equal((response.json as { ID: number }).ID, 0);
      assert.deepEqual(await harness.client.listSshKeys({ query: { name: "dry" } }), []);
    });

    test("keys of the own project can be filtered by title and label, and the quota limits them", async () => {
      const neighbour = await harness.neighbour({ SshKeys: 2 });
      const made = await Promise.all(
        ["One", "Two", "Three"].map((Title) =>
          neighbour.request("POST /sshkey", { Title, PublicKey: freshLine(), Labels: { n: Title } }),
        ),
      );
      assert.deepEqual(
        made.flatMap(({ code }) => code ?? []),
        ["quota_exceeded"],
      );
      const all = await neighbour.client.listSshKeys({});
      assert.equal(all.length, 2);
      const [first] = all;
      assert.deepEqual(await neighbour.client.listSshKeys({ query: { name: first?.Title.toUpperCase() ?? "" } }), [
        first,
      ]);
      assert.deepEqual(await neighbour.client.listSshKeys({ query: { label: `n=${first?.Title}` } }), [first]);
      await refused(harness.client.readSshKey({ path: { id: first?.ID ?? 0 } }), "sshkey_not_found");
    });

    test("creation and deletion emit events", async () => {
      const key = await keyOf("told");
      await harness.client.deleteSshKey({ path: { id: key.ID } });
      const events = await harness.client.listEvents({ query: { resource: `sshkey:${key.ID}` } });
      assert.deepEqual(
        events.map(({ Type, Data }) => [Type, Data]),
        [
          ["sshkey.created", key],
          ["sshkey.deleted", null],
        ],
      );
      const [last] = await harness.client.listAudit({ query: { resource: `sshkey:${key.ID}` } });
      assert.deepEqual([last?.Operation, last?.Before, last?.After], ["deleteSshKey", key, null]);
    });
  });

  describe("images", () => {
    const names = async (query = {}) => (await harness.client.listImages({ query })).map(({ Name }) => Name);
    const sync = (...images: OperatorImage[]) => syncOperatorImages(harness.brume.store, images, Date.now());
    const tiny = stock("brume-tiny", { title: "Brume Tiny Linux", os: "Linux", minRam: 128, hdd: 1 });
    const debian = stock("debian-12", { folder: null });

    before(() => sync(tiny, debian));

    test("the first operator image is image 1, in the legacy form", async () => {
      const response = await harness.request("GET /image/1");
      const { DateCreate, ...rest } = response.json as Image;
      assert.equal(
        JSON.stringify(rest),
        '{"ID":1,"Name":"brume-tiny","DisplayName":"Brume Tiny Linux","DCLocation":null,"Hdd":1,"Family":"Linux","IsAvailableISP":false,"IsISPLiteEnabled":false,"IsISPBusinessEnabled":false,"Type":"GoldServer","LinkedSshKeys":[],"OperatingSystemType":"Linux","TechName":"brume-tiny","State":"Active","MinRAM":128,"Error":null,"ServerID":null,"Progress":100,"Identity":null,"Upload":null,"Labels":{}}',
      );
      assert.ok(DateCreate);
      assert.equal((await harness.client.readImage({ path: { id: 2 } })).State, "Available");
      await refused(harness.client.readImage({ path: { id: 99 } }), "image_not_found");
    });

    test("operator images are visible to every project and can be filtered by name, state and location", async () => {
      const neighbour = await harness.neighbour();
      assert.deepEqual((await neighbour.client.listImages({})).length, 2);
      assert.deepEqual(await names({ name: "DEB*" }), ["debian-12"]);
      assert.deepEqual(await names({ state: "active" }), ["brume-tiny"]);
      assert.deepEqual(await names({ location: "local" }), ["brume-tiny", "debian-12"]);
      assert.deepEqual(await names({ location: "Moon" }), []);
    });

    test("operator images follow the image folder, and a returning image keeps its id", async () => {
      const { store } = harness.brume;
      await sync(debian);
      assert.deepEqual(await names(), ["debian-12"]);
      await refused(harness.client.readImage({ path: { id: 1 } }), "image_not_found");
      await sync(tiny, { ...debian, folder: "debian-12" }, stock("alpine"));
      assert.deepEqual(await names({ state: "Active" }), ["brume-tiny", "debian-12", "alpine"]);
      const before = await store.read.selectFrom("image").selectAll().orderBy("id").execute();
      assert.deepEqual(
        before.map(({ id }) => id),
        [1, 2, 3],
      );
      await syncOperatorImages(store, [tiny, { ...debian, folder: "debian-12" }, stock("alpine")], 0);
      assert.deepEqual(await store.read.selectFrom("image").selectAll().orderBy("id").execute(), before);
    });
  });

  test("every token can list the locations", async () => {
    const caller = await harness.as(["dns:read"]);
    const [location, ...more] = await caller.client.listLocations({});
    assert.deepEqual(more, []);
    const { Capacity, Engines, IsEnableIpV6, ...rest } = location ?? assert.fail();
    assert.deepEqual(rest, {
      ID: 1,
      Title: "Local",
      TechTitle: "Local",
      ShortTitle: "Local",
      Country: "",
      City: "",
      IsEnableLowPool: true,
      IsEnableHighPool: true,
      IsEnableBackup: true,
      IsOnlyForAdmins: false,
      HiddenToNewProjects: false,
      IsFirewallEnabled: true,
    });
    assert.equal(Engines.NameServer, "builtin");
    assert.ok(Capacity.FreeCPU <= Capacity.CPU);
    assert.equal(typeof IsEnableIpV6, "boolean");
    assert.equal((await harness.request("GET /DCLOCATION/?name=loc*")).headers.get("x-total-count"), "1");
    assert.equal((await harness.request("GET /dcLocation?name=x")).text, "[]");
  });
});
