/** All that can be asked of servers: the sum of the rooms with a part each. */
import { actionRoutes } from "./actionroutes.ts";
import { adoptionRoutes } from "./adoption.ts";
import { batchRoutes } from "./batchroutes.ts";
import type { Desk } from "./desk.ts";
import { diskCopyRoutes } from "./diskcopy.ts";
import type { ImportFlow, ImportTools } from "./flow/import.ts";
import { imageRoutes } from "./imageroutes.ts";
import { monitorRoutes } from "./monitorroutes.ts";
import type { Sampler } from "./sampler.ts";
import { serverRoutes } from "./serverroutes.ts";

export const allServerRoutes = (desk: Desk, sampler: Sampler, importing: ImportTools, importer: ImportFlow) => ({
  ...serverRoutes(desk),
  ...actionRoutes(desk),
  ...batchRoutes(desk),
  ...monitorRoutes(desk, sampler),
  ...imageRoutes(desk, importing, importer),
  ...adoptionRoutes(desk),
  ...diskCopyRoutes(desk),
});
