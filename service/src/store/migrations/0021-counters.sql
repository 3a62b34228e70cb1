-- Numbers that every creation of a server needs, kept up to date in the transaction of each change, so that nothing is counted.

-- Taken addresses of a network by block of 256 addresses: the first six digits of the stored address.
CREATE TABLE address_count (
  network_id {{int}} NOT NULL REFERENCES network (id) ON DELETE CASCADE,
  block {{text}} NOT NULL,
  taken {{int}} NOT NULL,
  PRIMARY KEY (network_id, block)
) {{strict}};
INSERT INTO address_count (network_id, block, taken)
  SELECT network_id, substr(ip, 1, 6), count(*) FROM link GROUP BY network_id, substr(ip, 1, 6);

-- Servers of a project: all, those that hold capacity, and what these hold.
CREATE TABLE server_sum (
  project_id {{int}} NOT NULL PRIMARY KEY REFERENCES project (id) ON DELETE CASCADE,
  servers {{int}} NOT NULL,
  holding {{int}} NOT NULL,
  cpu {{int}} NOT NULL,
  ram {{int}} NOT NULL,
  hdd {{int}} NOT NULL
) {{strict}};
INSERT INTO server_sum (project_id, servers, holding, cpu, ram, hdd)
  SELECT project_id, count(*), sum(CASE WHEN held_cpu > 0 THEN 1 ELSE 0 END), sum(held_cpu), sum(held_ram), sum(held_hdd)
  FROM server GROUP BY project_id;

-- A large zone is read page by page in the order of ids.
CREATE INDEX record_domain ON record (domain_id, id);
