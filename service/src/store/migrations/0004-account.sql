-- Projects, their tokens (hashes only) and the audit, which outlives what it tells of and so has no foreign keys.
CREATE TABLE project (
  id {{id}},
  name {{text}} NOT NULL UNIQUE,
  is_blocked {{int}} NOT NULL DEFAULT 0 CHECK (is_blocked IN (0, 1)),
  quotas {{text}} NOT NULL DEFAULT '{}',
  created {{int}} NOT NULL,
  labels {{text}} NOT NULL DEFAULT '{}',
  version {{int}} NOT NULL DEFAULT 1
) {{strict}};

CREATE TABLE token (
  id {{id}},
  project_id {{int}} NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  name {{text}} NOT NULL,
  hash {{text}} NOT NULL UNIQUE,
  scopes {{text}} NOT NULL,
  is_admin {{int}} NOT NULL CHECK (is_admin IN (0, 1)),
  domain_id {{int}},
  record_pattern {{text}},
  record_types {{text}},
  expires_at {{int}},
  rate_limit {{text}},
  allowed_from {{text}},
  created {{int}} NOT NULL,
  last_used {{int}},
  labels {{text}} NOT NULL DEFAULT '{}',
  version {{int}} NOT NULL DEFAULT 1
) {{strict}};
CREATE INDEX token_project ON token (project_id, id);

CREATE TABLE audit (
  id {{id}},
  project_id {{int}} NOT NULL,
  date {{int}} NOT NULL,
  token_id {{int}} NOT NULL,
  token_name {{text}} NOT NULL,
  address {{text}} NOT NULL,
  operation {{text}} NOT NULL,
  resource {{text}},
  resource_id {{int}},
  status {{int}} NOT NULL,
  request_id {{text}} NOT NULL,
  before {{text}},
  after {{text}}
) {{strict}};
CREATE INDEX audit_project ON audit (project_id, id);
