/**
 * Names of servers and NICs on the host. Each name contains the tag of the installation, so that several installations or tests on one host
 * never confuse their processes and devices.
 */

/** Returns the guest name on QEMU's command line, by which a process is found after a crash of the service. */
export const guestOf = (tag: string, id: number): string => `brume-${tag}-${id}`;

/** Returns the server id in such a guest name, or null. */
export function serverOf(tag: string, guest: string): number | null {
  const prefix = `brume-${tag}-`;
  return guest.startsWith(prefix) ? readId(guest.slice(prefix.length)) : null;
}

/** Parses an id in the name of a folder or process, or returns null. */
export const readId = (text: string): number | null => (/^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : null);

function checkLength(name: string): string {
  if (name.length > 15) throw new Error(`interface name ${name} is longer than 15 characters`);
  return name;
}

/** Returns the name of a NIC's TAP device before the router moves it into a network. */
export const deviceOf = (tag: string, nic: number): string => checkLength(`b${tag}t${nic.toString(36)}`);

/** Returns the name of a NIC's TAP device until QEMU has opened it. Under its final name the router would move it away earlier. */
export const pendingTapOf = (tag: string, nic: number): string => checkLength(`b${tag}x${nic.toString(36)}`);
