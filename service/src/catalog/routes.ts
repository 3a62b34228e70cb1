/** Route handlers for images, locations and settings; those for SSH keys are in `keyroutes.ts`. */
import type { Location } from "@brume/api/catalog.ts";
import type { Setting } from "@brume/api/setting.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError } from "../base/error.ts";
import type { Handlers } from "../http/handler.ts";
import { takePage } from "../http/list.ts";
import type { Reader } from "../store/db.ts";
import { keyRoutes } from "./keyroutes.ts";
import { findLocation } from "./model/rules.ts";
import { imageStateOf, imageTag, type Site, showImage, showLocation } from "./model/show.ts";
import * as table from "./table.ts";

/** Dependencies of the catalog route handlers. */
export interface CatalogContext extends Site {
  readonly clock: Clock;
  /** Titles in the operator's order. The first is the default; the position, from 1, is the id. */
  readonly locations: readonly string[];
  /** In the order of the reference, without secrets. They are constant while the service runs. */
  readonly settings: readonly Setting[];
  /** Returns total and free vCPUs, MB of memory and GB of disk of a location, after overcommitment. */
  capacity(db: Reader, location: string): Promise<Location["Capacity"]>;
}

type Names = "listImages" | "readImage" | "listLocations" | "listSettings";

export function catalogRoutes(context: CatalogContext): Handlers<Names> & ReturnType<typeof keyRoutes> {
  return {
    ...keyRoutes(context.clock),
    listImages: {
      async list({ query, caller }, db) {
        const wanted = query.location?.split(",").map((title) => findLocation(context.locations, title.trim()));
        const images = await table.listImages(db, caller.projectId);
        // An image without a location is available in all of them.
        const matching = images.filter(
          ({ location }) => wanted?.some((one) => one !== undefined && one === (location ?? one)) ?? true,
        );
        const page = takePage(matching, query, {
          id: (row) => row.id,
          name: (row) => row.name,
          state: (row) => imageStateOf(row),
          labels: (row) => JSON.parse(row.labels) as Record<string, string>,
        });
        return { ...page, items: page.items.map(showImage) };
      },
    },
    readImage: {
      async read({ params, caller }, db) {
        const row = await table.findImage(db, caller.projectId, params.id);
        if (row === undefined) throw new ApiError("image_not_found", `There is no image ${params.id} in this project.`);
        return { answer: showImage(row), tag: imageTag(row) };
      },
    },
    // Free capacity changes without a commit, so this response is never cached.
    listLocations: {
      async list({ query }, db) {
        const rows = context.locations.map((title, index) => ({ id: index + 1, title }));
        const page = takePage(rows, query, { id: (row) => row.id, name: (row) => row.title });
        const items: Location[] = [];
        for (const { id, title } of page.items)
          items.push(showLocation(id, title, context, await context.capacity(db, title)));
        return { ...page, items };
      },
    },
    listSettings: {
      list: async ({ query }) =>
        takePage(context.settings, query, { id: (setting) => setting.ID, name: (setting) => setting.Name }),
    },
  };
}
