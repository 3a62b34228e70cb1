/** `brume ssh`: runs the program `ssh` with address and user of a server. */
import { UsageError } from "../model/values.ts";
import { idArgument, numberFlag, type Run, textFlag } from "../session.ts";

export const run: Run = async (session) => {
  const { host, line } = session;
  const client = await session.client();
  const server = await client.readServer({ path: { id: await idArgument(session, 0) } }, { signal: host.signal });
  if (server.IP === "" && server.PrimaryNetworkIp === "")
    throw new UsageError(`${server.Name} has no address.`, `brume server attach ${server.Name} --network NETWORK`);
  if (!server.IsPowerOn)
    throw new UsageError(`${server.Name} is powered off.`, `brume server power-on ${server.Name} --wait-for ssh`);
  const port = await numberFlag(session, "port");
  const identity = textFlag(session, "identity");
  const user = textFlag(session, "user") ?? server.AdminUserName;
  // The key of a new server is stored at the first login; a changed key is still rejected.
  const args = ["-o", "StrictHostKeyChecking=accept-new", "-l", user];
  if (port !== undefined) args.push("-p", String(port));
  if (identity !== undefined) args.push("-i", identity);
  args.push("--", server.IP || server.PrimaryNetworkIp, ...line.after);
  try {
    return await host.run("ssh", args);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new UsageError("The program ssh is not installed.", "On Debian: apt-get install openssh-client");
  }
};
