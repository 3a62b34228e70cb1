import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { CreateServerInput } from "@brume/api/serverinput.ts";
import { imageRow, keyRow, networkRow, references, serverSpec } from "../../../../test/support/rows.ts";
import { ApiError } from "../../base/error.ts";
import { planServer, single } from "./plan.ts";

const plan = (spec: Partial<CreateServerInput> = {}, more = {}) =>
  planServer(single({ Name: "web-1", ...spec }), references(more));

function errorOf(spec: Partial<CreateServerInput>, more = {}): ApiError {
  try {
    plan(spec, more);
  } catch (error) {
    if (error instanceof ApiError) return error;
  }
  return assert.fail("it was planned");
}
const entriesOf = (spec: Partial<CreateServerInput>, more = {}) =>
  errorOf(spec, more).errors.map(({ pointer, code }) => `${pointer} ${code}`);

test("a name is sufficient; the rest are defaults", () => {
  assert.deepEqual(plan(), serverSpec());
});

test("all fields of the body are planned", () => {
  const spec = {
    HostName: "a",
    CPU: 4,
    RAM: 2048,
    HDD: 40,
    IsHighPerformance: true,
    HDDType: "HDD",
    DCLocation: "local",
    ImageID: "2",
    SshKeys: [8, 7, 8],
    NetworkID: 5,
    NetworkBandwidth: 20,
    NetworkIP: "10.64.0.10",
    UserData: "#!/bin/sh\n",
    WaitFor: "Ssh",
    IsProtected: true,
    isBackupActive: true,
    BackupPeriod: 14,
    Labels: { env: "prod" },
  } as const satisfies Partial<CreateServerInput> as unknown as Partial<CreateServerInput>;
  const { image, network, keys, ...rest } = plan(spec);
  assert.deepEqual([image.id, network?.id, keys.map(({ id }) => id)], [2, 5, [8, 7]]);
  assert.deepEqual(rest, {
    name: "web-1",
    hostName: "a",
    cpu: 4,
    ram: 2048,
    hdd: 40,
    fast: true,
    hddType: "SAS",
    location: "Local",
    bandwidth: 20,
    ip: "10.64.0.10",
    ipPointer: "/NetworkIP",
    userData: "#!/bin/sh\n",
    waitFor: "Ssh",
    isProtected: true,
    isBackupActive: true,
    backupPeriod: 14,
    labels: { env: "prod" },
  });
});

test("empty strings count as absent", () => {
  assert.deepEqual(plan({ HostName: "", DCLocation: "", ImageID: "", NetworkIP: "", UserData: "" }), plan());
});

test("a name without a valid host name leaves it to the id", () => {
  assert.equal(plan({ Name: "база" }).hostName, null);
});

test("default sizes are raised to the minimum of the image", () => {
  const { ram, hdd } = plan({ ImageID: "debian-12" }, { images: [imageRow(2, { min_ram: 1000, hdd: 20 })] });
  assert.deepEqual([ram, hdd], [1024, 20]);
});

test("all missing references are reported at once, each at its pointer", () => {
  const spec = { ImageID: "none", NetworkID: 99, DCLocation: "Moon", SshKeys: [7, 99, 98], NetworkIP: "10.0.0" };
  assert.deepEqual(entriesOf({ ...spec, UserData: "ж".repeat(32_769) }), [
    "/UserData too_long",
    "/NetworkIP format_invalid",
    "/ImageID unknown_reference",
    "/NetworkID unknown_reference",
    "/DCLocation unknown_reference",
    "/SshKeys/1 unknown_reference",
    "/SshKeys/2 unknown_reference",
  ]);
  assert.equal(plan({ ImageID: "debian-12", UserData: "ж".repeat(32_768) }).userData?.length, 32_768);
});

test("user data that an image without cloud-init would ignore is rejected", () => {
  const config = "#cloud-config\nusers:\n  - name: ann\n    sudo: true\npackages: [vim]\ntimezone: UTC\nruncmd: [id]\n";
  const refused = (UserData: string) =>
    errorOf({ UserData })
      .errors.map(({ pointer, code, detail }) => `${pointer} ${code} ${detail}`)
      .join();
  const must =
    "/UserData value_not_allowed UserData must be a script that begins with #!, or a #cloud-config that image brume-tiny supports";
  assert.equal(
    refused(config),
    `${must} without cloud-init. Not supported: users[0].sudo (must be false), packages, timezone.`,
  );
  const packed = gzipSync(config).toString("base64");
  assert.equal(
    refused(packed),
    `${must} without cloud-init. Not supported: users[0].sudo (must be false), packages, timezone.`,
  );
  assert.match(refused("MIME-Version: 1.0\n\n"), /cloud-init\. A MIME message is not supported\.$/);
  assert.match(refused(" #!/bin/sh\n"), /cloud-init\. This kind of text is not supported\.$/);
  assert.equal(plan({ UserData: "#!/bin/sh\nid: x\n" }).userData, "#!/bin/sh\nid: x\n");
  assert.equal(plan({ ImageID: "debian-12", UserData: config }).userData, config);
  const broken = errorOf({ ImageID: "debian-12", UserData: "H4sIAAAA" });
  assert.deepEqual(
    broken.errors.map(({ pointer, code, detail }) => [pointer, code, detail]),
    [
      [
        "/UserData",
        "value_not_allowed",
        "UserData cannot be read. User data starts like gzip but cannot be decompressed.",
      ],
    ],
  );
  const done = "#cloud-config\nusers: [ann]\nruncmd: [id]\n";
  assert.equal(plan({ UserData: done }).userData, done);
  const projectImage = imageRow(12, { name: "mine", guest: "tiny" });
  assert.throws(
    () => planServer(single({ Name: "web", ImageID: "12", UserData: config }), references({ images: [projectImage] })),
    ApiError,
  );
});

test("memory is validated against the image, keys against its family", () => {
  assert.deepEqual(entriesOf({ ImageID: "2", RAM: 128 }), ["/RAM out_of_range"]);
  const windows = { images: [imageRow(3, { name: "win", family: "Windows" })] };
  assert.deepEqual(entriesOf({ ImageID: "win", SshKeys: [7] }, windows), ["/SshKeys/0 value_not_allowed"]);
});

test("each other error is reported alone", () => {
  const far = { locations: ["Local", "Far"] };
  const cases: readonly (readonly [Partial<CreateServerInput>, object, string, RegExp])[] = [
    [{ ImageID: "10" }, { images: [imageRow(10, { state: "New" })] }, "image_not_ready", /Image 10/],
    [
      { ImageID: "9" },
      { ...far, images: [imageRow(9, { location: "Far" })] },
      "location_mismatch",
      /in Far, the server in Local/,
    ],
    [{ NetworkID: 5, DCLocation: "Far" }, far, "location_mismatch", /Network 5 is in Local, the server in Far/],
    [{ NetworkID: 5 }, { networks: [networkRow(5, { state: "Deleting" })] }, "network_deleting", /Network 5/],
    [{ ImageID: "2", HDD: 1 }, {}, "disk_too_small", /needs 2 GB, the disk has 1 GB/],
  ];
  for (const [spec, more, code, detail] of cases) {
    const error = errorOf(spec, more);
    assert.equal(error.code, code);
    assert.match(error.message, detail);
  }
});

test("the default location is that of the network", () => {
  const more = { locations: ["Local", "Far"], networks: [networkRow(5, { location: "Far" })] };
  assert.equal(plan({ NetworkID: 5 }, more).location, "Far");
  assert.equal(plan({}, more).location, "Local");
  assert.equal(plan({ DCLocation: "far" }, more).location, "Far");
});

test("duplicate keys are removed", () => {
  assert.deepEqual(plan({ SshKeys: [7, 7] }).keys, [keyRow(7)]);
});
