/** What a firewall rule matches, as a sentence. */
import { useCallback } from "react";
import type { Rule } from "../../data/firewall.ts";
import { useTexts } from "../../texts/texts.tsx";

/** Returns the function that writes what a rule matches. */
export function useSentence(): (rule: Rule) => string {
  const t = useTexts();
  return useCallback(
    ({ Protocol, Source, SourcePort, Destination, DestinationPort }) => {
      const place = (addresses: string, port: string): string => {
        const words = (addresses || "any").split(",").map((one) => t.firewall.places[one.trim()] ?? one.trim());
        return port === "any" || port === "" ? words.join(", ") : t.firewall.atPort(words.join(", "), port);
      };
      const protocol = Protocol === "Any" ? t.firewall.anyProtocol : t.firewall.protocols[Protocol];
      return t.firewall.sentence(protocol, place(Source, SourcePort), place(Destination, DestinationPort));
    },
    [t],
  );
}
