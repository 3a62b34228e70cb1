/**
 * The stock: images that the operator of the host puts in, brought into the table when the service starts. They are known by their
 * names, so one that is taken away and comes back has the id it had, and image 1 stays image 1.
 */
import type { OperatorImage } from "../drivers/machine/interface.ts";
import type { Store } from "../store/db.ts";
import { insertImage, listOperatorImages, lockOperatorImages, updateImage } from "./table.ts";

/** Makes the table say what there is. On a fresh database the first image gets id 1. */
export async function syncOperatorImages(store: Store, images: readonly OperatorImage[], now: number): Promise<void> {
  await store.write(async (tx) => {
    await lockOperatorImages(tx);
    const known = new Map((await listOperatorImages(tx)).map((row) => [row.name, row]));
    for (const { name, title, family, os, minRam, hdd, folder, guest } of images) {
      const row = known.get(name);
      known.delete(name);
      // The step that fetches one shows it as `New` again, if there is still such a step.
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
