/** Server 41, which the database does not contain after a restore. */
import type { Orphan } from "../orphan.ts";
import { date, type Examples } from "./example.ts";

const orphan: Orphan = {
  ID: 1,
  Kind: "Server",
  Number: 41,
  Name: "web-9",
  Family: "Linux",
  CPU: 1,
  RAM: 512,
  HDD: 10,
  Bytes: 203_161_600,
  State: "Held",
  DateFound: date,
};

/** Examples of the operations on orphans. */
export const orphanExamples: Examples = {
  listOrphans: { answer: [orphan] },
  readOrphan: { path: [1], answer: orphan },
  adoptOrphan: { path: [1], request: { Name: "web-9", ProjectID: 1 }, answer: { ServerID: 41, ImageID: null } },
  deleteOrphan: { path: [1] },
};
