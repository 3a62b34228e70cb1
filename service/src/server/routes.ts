/** Combines the handlers of all operations of servers. */
import { actionRoutes } from "./actionroutes.ts";
import { adoptionRoutes } from "./adoption.ts";
import { batchRoutes } from "./batchroutes.ts";
import type { ServerContext } from "./context.ts";
import { diskCopyRoutes } from "./diskcopy.ts";
import type { ImportFlow } from "./flow/import.ts";
import { imageRoutes } from "./imageroutes.ts";
import { monitorRoutes } from "./monitorroutes.ts";
import type { Sampler } from "./sampler.ts";
import { serverRoutes } from "./serverroutes.ts";
import { createReceiver, type UploadContext } from "./upload.ts";
import { uploadRoutes } from "./uploadroutes.ts";

/** Returns the handlers of all operations of servers. */
export const allServerRoutes = (
  context: ServerContext,
  sampler: Sampler,
  uploadContext: UploadContext,
  importer: ImportFlow,
  receiver = createReceiver(uploadContext),
) => ({
  ...serverRoutes(context),
  ...actionRoutes(context),
  ...batchRoutes(context),
  ...monitorRoutes(context, sampler),
  ...imageRoutes(context, uploadContext, importer, receiver),
  ...uploadRoutes(context, uploadContext, importer, receiver),
  ...adoptionRoutes(context),
  ...diskCopyRoutes(context),
});
