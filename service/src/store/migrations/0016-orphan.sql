-- Servers, images and snapshots that are on the host and in no row: found after a restore, and kept until an operator says what
-- becomes of them. name is the server's number, or the folder of the image.
CREATE TABLE orphan (
  id {{id}},
  kind {{text}} NOT NULL CHECK (kind IN ('Server', 'Image', 'Snapshot')),
  name {{text}} NOT NULL,
  title {{text}} NOT NULL,
  uuid {{text}} NOT NULL,
  family {{text}} NOT NULL,
  image {{text}} NOT NULL,
  cpu {{int}} NOT NULL,
  ram {{int}} NOT NULL,
  hdd {{int}} NOT NULL,
  bytes {{int}} NOT NULL,
  boot {{int}} NOT NULL,
  disk_version {{int}} NOT NULL,
  state {{text}} NOT NULL CHECK (state IN ('Held', 'Removing')),
  found {{int}} NOT NULL
) {{strict}};
CREATE UNIQUE INDEX orphan_name ON orphan (kind, name);

-- What this database held and saw deleted. What is found on the host and is not in here is never removed without being asked.
CREATE TABLE retired (
  kind {{text}} NOT NULL CHECK (kind IN ('Server', 'Image')),
  name {{text}} NOT NULL,
  uuid {{text}} NOT NULL,
  date {{int}} NOT NULL,
  PRIMARY KEY (kind, name)
) {{strict}};

-- How the machine is beside on or off, how often it has crashed, and when its last backup failed.
ALTER TABLE server ADD COLUMN condition {{text}} NOT NULL DEFAULT 'Normal';
ALTER TABLE server ADD COLUMN crashes {{int}} NOT NULL DEFAULT 0;
ALTER TABLE server ADD COLUMN backup_failed {{int}};

-- A task that overtakes those that wait for the same subject.
ALTER TABLE task ADD COLUMN is_urgent {{int}} NOT NULL DEFAULT 0;
