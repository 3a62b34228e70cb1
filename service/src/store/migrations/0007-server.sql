-- SSH keys, images, servers and their groups. What runs for a server stands in task, its places in networks in link.
CREATE TABLE sshkey (
  id {{id}},
  project_id {{int}} NOT NULL REFERENCES project (id),
  title {{text}} NOT NULL,
  type {{text}} NOT NULL,
  -- As in the second word of an OpenSSH line.
  base64 {{text}} NOT NULL,
  comment {{text}} NOT NULL,
  fingerprint {{text}} NOT NULL,
  created {{int}} NOT NULL,
  labels {{text}} NOT NULL DEFAULT '{}',
  version {{int}} NOT NULL DEFAULT 1
) {{strict}};
CREATE UNIQUE INDEX sshkey_title ON sshkey (project_id, title);

-- Stock images belong to no project, and are known by their names: one that the operator takes away is Withdrawn, so that it has its
-- id again when it comes back. folder is where the disk is, among all images of the host; null as long as there is none.
CREATE TABLE image (
  id {{id}},
  project_id {{int}} REFERENCES project (id),
  type {{text}} NOT NULL CHECK (type IN ('GoldServer', 'Client', 'Backup')),
  name {{text}} NOT NULL,
  display_name {{text}} NOT NULL,
  location {{text}},
  hdd {{int}} NOT NULL,
  min_ram {{int}} NOT NULL,
  family {{text}} NOT NULL CHECK (family IN ('Linux', 'Windows', 'Bsd')),
  os {{text}} NOT NULL,
  tech_name {{text}} NOT NULL,
  state {{text}} NOT NULL CHECK (state IN ('Available', 'New', 'Active', 'Failed', 'Withdrawn')),
  folder {{text}},
  server_id {{int}},
  progress {{int}} NOT NULL CHECK (progress BETWEEN 0 AND 100),
  error {{text}},
  created {{int}} NOT NULL,
  labels {{text}} NOT NULL DEFAULT '{}',
  version {{int}} NOT NULL DEFAULT 1,
  CHECK ((type = 'GoldServer') = (project_id IS NULL))
) {{strict}};
CREATE INDEX image_project ON image (project_id, id);
CREATE UNIQUE INDEX image_stock ON image (name) WHERE project_id IS NULL;

CREATE TABLE server_batch (
  id {{id}},
  project_id {{int}} NOT NULL REFERENCES project (id),
  policy {{text}} NOT NULL CHECK (policy IN ('Atomic', 'BestEffort')),
  state {{text}} NOT NULL CHECK (state IN ('New', 'Active', 'Failed', 'Deleting')),
  -- JSON list of what was refused when it was made.
  errors {{text}} NOT NULL,
  created {{int}} NOT NULL
) {{strict}};
CREATE INDEX server_batch_project ON server_batch (project_id, id);

-- cpu, ram and hdd are what the server has now; the held ones are what it may come to by all that was accepted, which is what quotas
-- and the room of a location count. is_on is the wish. image_name and family are copies, since images go before their servers.
CREATE TABLE server (
  id {{id}},
  project_id {{int}} NOT NULL REFERENCES project (id),
  batch_id {{int}} REFERENCES server_batch (id),
  name {{text}} NOT NULL,
  host_name {{text}} NOT NULL,
  state {{text}} NOT NULL CHECK (state IN ('New', 'Active', 'Blocked', 'Deleting', 'Failed')),
  is_on {{int}} NOT NULL CHECK (is_on IN (0, 1)),
  cpu {{int}} NOT NULL,
  ram {{int}} NOT NULL,
  hdd {{int}} NOT NULL,
  held_cpu {{int}} NOT NULL,
  held_ram {{int}} NOT NULL,
  held_hdd {{int}} NOT NULL,
  is_high_performance {{int}} NOT NULL CHECK (is_high_performance IN (0, 1)),
  hdd_type {{text}} NOT NULL CHECK (hdd_type IN ('SSD', 'SAS', 'SATA')),
  location {{text}} NOT NULL,
  image_id {{int}} NOT NULL,
  image_name {{text}} NOT NULL,
  family {{text}} NOT NULL,
  -- Sealed.
  admin_password {{bytes}} NOT NULL,
  user_data {{bytes}},
  -- Counts rebuilds, in each of which the guest is new, and starts.
  disk_version {{int}} NOT NULL,
  boot {{int}} NOT NULL,
  is_protected {{int}} NOT NULL CHECK (is_protected IN (0, 1)),
  is_backup_active {{int}} NOT NULL CHECK (is_backup_active IN (0, 1)),
  backup_period {{int}} NOT NULL,
  backed_up {{int}},
  error {{text}},
  created {{int}} NOT NULL,
  labels {{text}} NOT NULL DEFAULT '{}',
  version {{int}} NOT NULL DEFAULT 1
) {{strict}};
CREATE INDEX server_project ON server (project_id, id);
CREATE INDEX server_batch_member ON server (batch_id, id) WHERE batch_id IS NOT NULL;

-- Keys that were put into the guest, as they were then: they stay when the key is deleted.
CREATE TABLE server_key (
  server_id {{int}} NOT NULL REFERENCES server (id) ON DELETE CASCADE,
  place {{int}} NOT NULL,
  -- JSON of the row of sshkey.
  sshkey {{text}} NOT NULL,
  PRIMARY KEY (server_id, place)
) {{strict}};
