-- Domains and records. `ascii` is the name on the wire, unique over all projects; `subtree` is its labels from the top down, each
-- with a dot behind it, so that everything below a name is one range. `serial` of a record is the zone's serial it came in with.
CREATE TABLE domain (
  id {{id}},
  project_id {{int}} NOT NULL REFERENCES project (id),
  name {{text}} NOT NULL,
  ascii {{text}} NOT NULL UNIQUE,
  subtree {{text}} NOT NULL UNIQUE,
  serial {{int}} NOT NULL,
  record_count {{int}} NOT NULL DEFAULT 0,
  is_delegate {{int}} NOT NULL DEFAULT 0 CHECK (is_delegate IN (0, 1)),
  import_report {{text}},
  created {{int}} NOT NULL,
  labels {{text}} NOT NULL DEFAULT '{}',
  version {{int}} NOT NULL DEFAULT 1
) {{strict}};
CREATE INDEX domain_project ON domain (project_id, id);

CREATE TABLE record (
  id {{id}},
  domain_id {{int}} NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
  type {{text}} NOT NULL,
  owner {{text}} NOT NULL,
  node {{text}} NOT NULL,
  ttl {{int}} NOT NULL,
  value {{text}} NOT NULL,
  serial {{int}} NOT NULL,
  created {{int}} NOT NULL,
  labels {{text}} NOT NULL DEFAULT '{}',
  version {{int}} NOT NULL DEFAULT 1
) {{strict}};
CREATE INDEX record_node ON record (domain_id, node);

-- What each serial changed: history and restore.
CREATE TABLE domain_version (
  domain_id {{int}} NOT NULL REFERENCES domain (id) ON DELETE CASCADE,
  serial {{int}} NOT NULL,
  date {{int}} NOT NULL,
  token_id {{int}},
  request_id {{text}},
  changes {{text}} NOT NULL,
  PRIMARY KEY (domain_id, serial)
) {{strict}};

-- The last serial of names that are no more: a name made again goes on from it.
CREATE TABLE retired_zone (
  ascii {{text}} NOT NULL PRIMARY KEY,
  serial {{int}} NOT NULL
) {{strict}};
