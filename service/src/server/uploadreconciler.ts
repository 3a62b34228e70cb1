/** Reconciler that deletes images whose upload was not continued in time, with what was received (docs/images.md#uploads). */
import { findAnyImage, listUploads, lockImage } from "../catalog/table.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import type { PruneTime } from "../engine/prunetime.ts";
import type { FlowContext } from "./flow/context.ts";
import { type ImageFlows, queueImageRemoval } from "./flow/image.ts";

/** Milliseconds between checks for uploads that are over. */
const period = 300_000;

/** Checks all uploads every five minutes. */
export function uploadReconciler(context: FlowContext, flows: ImageFlows, pruneTime: PruneTime): Reconciler {
  const { store, log } = context;
  return defineReconciler({
    name: "image.upload",
    subject: "images",
    single: true,
    period,
    async run() {
      const now = await pruneTime.read();
      const isOver = ({ upload_due }: { readonly upload_due: number | null }) => (upload_due ?? now) < now;
      for (const { id } of (await listUploads(store.read)).filter(isOver))
        await store.write(async (tx) => {
          await lockImage(tx, id);
          const image = await findAnyImage(tx, id);
          if (image === undefined || !isOver(image)) return;
          await queueImageRemoval(context, tx, flows, image, null);
          log("info", "Deleted an image whose upload was not continued.", { image: id, name: image.name });
        });
    },
  });
}
