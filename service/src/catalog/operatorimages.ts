/**
 * Synchronises the images that the operator installs on the host with the table, when the service starts. Images are identified by name, so
 * an image that is removed and installed again keeps its id.
 */
import type { OperatorImage } from "../drivers/machine/interface.ts";
import type { Store } from "../store/db.ts";
import { insertImage, listOperatorImages, lockOperatorImages, updateImage } from "./table.ts";

/** Inserts and updates the rows of these images, and marks missing ones as `Withdrawn`. On a new database the first image gets id 1. */
export async function syncOperatorImages(store: Store, images: readonly OperatorImage[], now: number): Promise<void> {
  await store.write(async (tx) => {
    await lockOperatorImages(tx);
    const known = new Map((await listOperatorImages(tx)).map((row) => [row.name, row]));
    for (const { name, title, family, os, minRam, hdd, folder, guest } of images) {
      const row = known.get(name);
      known.delete(name);
      // If a step is still fetching the image, it sets the state to `New` again.
      const state = folder !== null ? "Active" : "Available";
      const spec = {
        display_name: title,
        family,
        os,
        min_ram: minRam,
        hdd,
        folder,
        guest,
        state,
        progress: folder !== null ? 100 : 0,
      } as const;
      if (row === undefined)
        await insertImage(tx, {
          ...spec,
          name,
          tech_name: name,
          project_id: null,
          type: "GoldServer",
          location: null,
          created: now,
          labels: "{}",
          identity: null,
          version: 1,
        });
      else if (Object.entries(spec).some(([key, value]) => row[key as keyof typeof spec] !== value))
        await updateImage(tx, row.id, { ...spec, error: null });
    }
    for (const { id, state } of known.values())
      if (state !== "Withdrawn") await updateImage(tx, id, { state: "Withdrawn", folder: null, progress: 0 });
  });
}
