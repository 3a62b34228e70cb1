/** Saves the zone file of a domain. */
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";

/** Saves a zone file under the name of its domain. */
export function saveZone(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/dns" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${name}.zone`;
  link.click();
  URL.revokeObjectURL(url);
}

/** Returns the function that reads the zone file of the domain and saves it. */
export function useExport(id: number, name: string) {
  const { client } = useData();
  return useChange(async () => saveZone(name, await client.text("readDomain", { path: { id } })));
}
