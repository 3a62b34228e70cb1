/** What pages show of images. The name is the same on all pages: the readable one. Names of the API, such as that of a server's image, are for programs. */
import type { Image } from "@brume/api/catalog.ts";
import type { Server } from "@brume/api/server.ts";
import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { useData } from "./data.tsx";
import { queriesOf } from "./queries.ts";

export const imageName = ({ Name, DisplayName }: Pick<Image, "Name" | "DisplayName">): string => DisplayName || Name;

/** Returns whether a server can be created from the image. */
export const isReady = ({ State }: Pick<Image, "State">): boolean => State === "Active" || State === "Available";

/** Returns the function that returns the name of the image of a server. A deleted image has only its name of the API. */
export function useImageName(): (server: Server) => string {
  const images = useQuery(queriesOf(useData().client).images()).data;
  const names = useMemo(() => new Map(images?.map((image) => [image.ID, imageName(image)])), [images]);
  return useCallback(({ ImageID, Image: name }) => names.get(ImageID) ?? name, [names]);
}
