/** Saves the zone file of a domain. */
import { useChange } from "../../data/change.ts";
import { useData } from "../../data/data.tsx";

/** Returns the function that saves the zone file of the domain under its name. */
export function useExport(id: number, name: string) {
  const { client } = useData();
  return useChange(async () => {
    const text = await client.text("readDomain", { path: { id } });
    const url = URL.createObjectURL(new Blob([text], { type: "text/dns" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = `${name}.zone`;
    link.click();
    URL.revokeObjectURL(url);
  });
}
