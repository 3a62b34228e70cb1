/** What a guest has printed, as text. Pure. */

/** Control sequences of terminals. */
// oxlint-disable-next-line no-control-regex
const sequences = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|[()][A-Z0-9]|[=>78cDEHM])|[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** Removes control sequences: a page cannot show them, and a terminal would answer some of them. */
export const plainOutput = (output: string): string => output.replaceAll(sequences, "");
