/** The state that the driver stores of a run of a server, without a process. */
import type { State } from "../../service/src/drivers/machine/qemu/folder.ts";

/** Returns the state of a run that has not ended as far as the driver knows; its process does not exist. */
export const stateOf = (more: Partial<State> = {}): State => ({
  uuid: "b1a5b9f0-0000-4000-8000-000000000007",
  boot: 3,
  version: 1,
  startedAt: 1000,
  accelerator: "tcg",
  maxCpus: 1,
  maxMemory: 128,
  share: 1,
  child: { pid: 2 ** 22 + 1, born: 0 },
  host: "life",
  exit: null,
  ...more,
});
