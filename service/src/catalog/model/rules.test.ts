import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseImage, chooseLocation, findLocation, requireUsable, techNameOf } from "./rules.ts";

const image = (
  id: number,
  name: string,
  project_id: number | null,
  state: "Active" | "Available" | "New" | "Withdrawn",
) => ({ id, name, project_id, state }) as const;
const images = [
  image(1, "brume-tiny", null, "Active"),
  image(2, "debian-12", null, "Available"),
  image(3, "web", 7, "New"),
  image(4, "web", 7, "Active"),
  image(5, "2", 7, "Active"),
  image(6, "gone", null, "Withdrawn"),
  image(7, "debian-13", null, "New"),
];
const choose = (reference?: string) => chooseImage(images, reference, "/ImageID");

test("an image is selected by id, by id as text or by name; without one it is the first image", () => {
  for (const nothing of [undefined, "", "0"]) assert.equal(choose(nothing), images[0]);
  assert.equal(choose("1"), images[0]);
  assert.equal(choose("debian-12"), images[1]);
  assert.equal(choose("0000000004"), images[3]);
});

test("an id has priority over a name; of several images with one name a ready one is selected", () => {
  assert.equal(choose("2"), images[1]);
  assert.equal(choose("web"), images[3]);
});

test("a missing or withdrawn object is an error of its field", () => {
  for (const reference of ["9", "Debian-12", "gone", "6", "99999999999"])
    assert.deepEqual(choose(reference), {
      pointer: "/ImageID",
      code: "unknown_reference",
      detail: `ImageID must be the id or name of an image, not "${reference}".`,
    });
  const none = chooseImage([], undefined, "/Servers/2/ImageID");
  assert.equal("code" in none && none.code, "field_required");
});

test("an image in creation cannot be used, one that can be fetched or is being fetched can", () => {
  for (const id of [0, 1, 6]) requireUsable(images[id] ?? assert.fail());
  assert.throws(() => requireUsable(images[2] ?? assert.fail()), {
    code: "image_not_ready",
    message: /Image 3 \(web\) is New/,
  });
});

test("locations are found in any letter case and shown in their own", () => {
  assert.equal(findLocation(["Local", "Far"], "FAR"), "Far");
  assert.equal(findLocation(["Local"], ""), undefined);
  assert.equal(chooseLocation(["Local"], "local", "/DCLocation"), "Local");
  assert.deepEqual(chooseLocation(["Local", "Far"], "Moon", "/Servers/0/DCLocation"), {
    pointer: "/Servers/0/DCLocation",
    code: "unknown_reference",
    detail: 'DCLocation must be one of Local, Far, not "Moon".',
  });
});

test("a TechName contains only allowed characters", () => {
  assert.equal(techNameOf("Web base"), "Web-base");
  assert.equal(techNameOf("база 1.0_x"), "-1.0_x");
});
