/**
 * What a server is called on the machine. The tag of the installation is in every name that others could see, so that two
 * installations, or two tests at once, never take each other's for their own.
 */

/** As QEMU carries it on its command line: how a process is known after the service was killed. */
export const guestOf = (tag: string, id: number): string => `brume-${tag}-${id}`;

/** The server of such a name, else null. */
export function serverOf(tag: string, guest: string): number | null {
  const prefix = `brume-${tag}-`;
  return guest.startsWith(prefix) ? readId(guest.slice(prefix.length)) : null;
}

/** An id as it stands in names of folders and processes, else null. */
export const readId = (text: string): number | null => (/^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : null);

function fit(name: string): string {
  if (name.length > 15) throw new Error(`interface name ${name} is longer than 15 characters`);
  return name;
}

/** A card's tap, before the router takes it into a network. */
export const deviceOf = (tag: string, nic: number): string => fit(`b${tag}t${nic.toString(36)}`);

/** What a card's tap is called until QEMU holds it: under its own name the router would take it away. */
export const unheldOf = (tag: string, nic: number): string => fit(`b${tag}x${nic.toString(36)}`);
