/** The name inside a guest, from the name that people gave the server: one label of RFC 1123, in lower case. */

const mostCharacters = 63;

/** Null where nothing of the name can stand in a host name; then it is `server-<ID>`, see `numberedHostName`. */
export function hostNameOf(name: string): string | null {
  const label = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, mostCharacters)
    .replace(/-$/, "");
  return label === "" ? null : label;
}

export const numberedHostName = (id: number): string => `server-${id}`;
