/**
 * Confines daemons that read packets of any sender, charon and wireguard-go: they see only their program, its libraries, three devices and
 * one folder, and have only the capabilities to manage their network and to use ports below 1024. They run in the network's namespace,
 * cannot enter another one, and cannot read a file of the host, although their user is root.
 */
import type { Exec } from "../../exec.ts";
import { enterRoot, findNeeds, keepRights } from "../../privateroot.ts";

/** Returns the command line of the confined program. `folder`: the folder that it may write. */
export type Confine = (args: readonly string[], folder: string) => Promise<readonly string[]>;

const rights = keepRights(["net_admin", "net_bind_service"]);

/**
 * Creates the function for one program; `data`: more files that it reads. Where the host, such as some containers, does not permit a
 * private root, the program sees the files of the host, with the same capabilities.
 */
export function createConfine(exec: Exec, program: string, data: readonly string[] = []): Confine {
  let found: Promise<readonly string[]> | undefined;

  const enter = (needs: readonly string[], mounts: readonly (readonly ["rw", string, string])[], command: string[]) =>
    enterRoot({ base: "/sys", devices: "vpn", folder: "/", needs, mounts }, [], command, false);
  async function tryRoot(): Promise<readonly string[]> {
    const needs = await findNeeds(exec, [program], data);
    await exec.run(enter(needs, [], [...rights, "setpriv", "--version"]));
    return needs;
  }
  return async (args, folder) => {
    found ??= tryRoot();
    const command = [...rights, program, ...args];
    const needs = await found.catch(() => null);
    // A failure may be temporary, so the next start tries again.
    if (needs === null) found = undefined;
    return needs === null ? command : enter(needs, [["rw", folder, folder]], command);
  };
}
