/** The networks that a server can be linked to, besides the shared network. */
import { useQuery } from "@tanstack/react-query";
import { useData, useMay } from "../../data/data.tsx";
import { queriesOf } from "../../data/queries.ts";
import { useTexts } from "../../texts/texts.tsx";

interface NetworkOption {
  readonly id: number;
  readonly name: string;
  /** Its kind and block. */
  readonly about: string;
}

/** Returns the networks, and the reads that they come from. */
export function useNetworkOptions() {
  const t = useTexts();
  const queries = queriesOf(useData().client);
  const enabled = useMay("network:read");
  const publicNetworks = useQuery({ ...queries.publicNetworks(), enabled });
  const privateNetworks = useQuery({ ...queries.networks(), enabled });
  const options: readonly NetworkOption[] = [
    ...(publicNetworks.data ?? []).map(({ Id, Name, CIDR }) => ({
      id: Id,
      name: Name,
      about: t.create.publicNetwork(CIDR),
    })),
    ...(privateNetworks.data ?? []).map(({ ID, Name, CIDR }) => ({
      id: ID,
      name: Name,
      about: t.create.privateNetwork(CIDR),
    })),
  ];
  return { options, reads: [publicNetworks, privateNetworks] };
}
