/**
 * All tables for Kysely; the row types are in `schema/`, one file for each feature. The migrations create the tables, and
 * `test/invariants/schema.test.ts` checks that both agree. Times are milliseconds since 1970, booleans are 0 or 1, and JSON is text that
 * SQL never parses.
 */

import type { AuditTable, ProjectTable, SessionTable, TokenTable } from "./schema/account.ts";
import type { ImageTable, SshKeyTable } from "./schema/catalog.ts";
import type {
  DomainClaimTable,
  DomainTable,
  DomainVersionTable,
  RecordTable,
  ReservedNameTable,
  RetiredZoneTable,
  WithdrawnDomainTable,
} from "./schema/dns.ts";
import type {
  EventTable,
  IdempotencyTable,
  MigrationTable,
  ProbeTable,
  PruneTimeTable,
  TaskTable,
  TermTable,
} from "./schema/infrastructure.ts";
import type {
  AddressCountTable,
  FreeBlockTable,
  LinkTable,
  NetworkTable,
  RetiredBlockTable,
  TunnelTable,
} from "./schema/network.ts";
import type {
  OrphanTable,
  RetiredTable,
  SampleTable,
  ServerBatchTable,
  ServerKeyTable,
  ServerSumTable,
  ServerTable,
} from "./schema/server.ts";
import type { WebhookDeliveryTable, WebhookTable } from "./schema/webhook.ts";

/** All tables, by name. */
export interface Tables {
  migration: MigrationTable;
  term: TermTable;
  event: EventTable;
  task: TaskTable;
  idempotency: IdempotencyTable;
  project: ProjectTable;
  token: TokenTable;
  session: SessionTable;
  audit: AuditTable;
  domain: DomainTable;
  reserved_name: ReservedNameTable;
  domain_claim: DomainClaimTable;
  withdrawn_domain: WithdrawnDomainTable;
  record: RecordTable;
  domain_version: DomainVersionTable;
  retired_zone: RetiredZoneTable;
  network: NetworkTable;
  retired_block: RetiredBlockTable;
  free_block: FreeBlockTable;
  link: LinkTable;
  address_count: AddressCountTable;
  tunnel: TunnelTable;
  sshkey: SshKeyTable;
  image: ImageTable;
  server_batch: ServerBatchTable;
  server: ServerTable;
  server_key: ServerKeyTable;
  server_sum: ServerSumTable;
  sample: SampleTable;
  probe: ProbeTable;
  prune_time: PruneTimeTable;
  orphan: OrphanTable;
  retired: RetiredTable;
  webhook: WebhookTable;
  webhook_delivery: WebhookDeliveryTable;
}
