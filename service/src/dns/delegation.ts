/** Does the public tree lead here? Asks a resolver for the NS set of a domain; whatever goes wrong means: not known to. */
import { Resolver } from "node:dns/promises";

/** `resolvers`: addresses to ask, empty for nobody (then the answer is no), null for the machine's own. */
export async function isDelegated(
  domain: string,
  nameServers: readonly string[],
  resolvers: readonly string[] | null,
  signal: AbortSignal,
): Promise<boolean> {
  if (resolvers?.length === 0) return false;
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  if (resolvers !== null) resolver.setServers(resolvers);
  const stop = () => resolver.cancel();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const found = await resolver.resolveNs(domain);
    return found.some((name) => nameServers.includes(name.toLowerCase().replace(/\.$/, "")));
  } catch {
    return false;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
