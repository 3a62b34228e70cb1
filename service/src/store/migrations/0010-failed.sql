-- A server that has failed holds nothing, which its row says itself: so it does also while it is being deleted.
UPDATE server SET held_cpu = 0, held_ram = 0, held_hdd = 0
 WHERE state = 'Failed' OR (state = 'Deleting' AND error IS NOT NULL);
DROP INDEX server_held;
CREATE INDEX server_held ON server (project_id, held_cpu, held_ram, held_hdd) WHERE held_cpu > 0;
