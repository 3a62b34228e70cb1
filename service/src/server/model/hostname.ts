/** Derives the host name inside the guest from the name of the server: one label of RFC 1123, in lower case. */

const mostCharacters = 63;

/** Returns null if no character of the name is valid in a host name; then the host name is `numberedHostName`. */
export function hostNameOf(name: string): string | null {
  const label = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, mostCharacters)
    .replace(/-$/, "");
  return label === "" ? null : label;
}

/** Returns the host name of a server without a usable name: `server-<ID>`. */
export const numberedHostName = (id: number): string => `server-${id}`;
