/** Combines the handlers of all operations of servers. */
import { actionRoutes } from "./actionroutes.ts";
import { adoptionRoutes } from "./adoption.ts";
import { batchRoutes } from "./batchroutes.ts";
import type { ServerContext } from "./context.ts";
import { diskCopyRoutes } from "./diskcopy.ts";
import type { ImportContext, ImportFlow } from "./flow/import.ts";
import { imageRoutes } from "./imageroutes.ts";
import { monitorRoutes } from "./monitorroutes.ts";
import type { Sampler } from "./sampler.ts";
import { serverRoutes } from "./serverroutes.ts";

/** Returns the handlers of all operations of servers. */
export const allServerRoutes = (
  context: ServerContext,
  sampler: Sampler,
  importContext: ImportContext,
  importer: ImportFlow,
) => ({
  ...serverRoutes(context),
  ...actionRoutes(context),
  ...batchRoutes(context),
  ...monitorRoutes(context, sampler),
  ...imageRoutes(context, importContext, importer),
  ...adoptionRoutes(context),
  ...diskCopyRoutes(context),
});
