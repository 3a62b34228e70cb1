/** What a firewall rule matches, as a sentence. */
import { useCallback } from "react";
import type { Rule } from "../../data/firewall.ts";
import { useTexts } from "../../texts/texts.tsx";

/** Returns the function that writes what a rule matches. */
export function useSentence(): (rule: Rule) => string {
  const t = useTexts();
  return useCallback(
    ({ Protocol, Source, SourcePort, Destination, DestinationPort }) => {
      const place = (address: string, port: string): string =>
        port === "any" || port === "" ? address || "any" : t.firewall.atPort(address || "any", port);
      const protocol = Protocol === "Any" ? t.firewall.anyProtocol : t.firewall.protocols[Protocol];
      return t.firewall.sentence(protocol, place(Source, SourcePort), place(Destination, DestinationPort));
    },
    [t],
  );
}
