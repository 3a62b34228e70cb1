-- Who may have which name: what the operator reserves, what projects claim, and the domains that a claim took from a project.
CREATE TABLE reserved_name (
  id {{id}},
  name {{text}} NOT NULL,
  ascii {{text}} NOT NULL UNIQUE,
  project_id {{int}} REFERENCES project (id) ON DELETE SET NULL,
  created {{int}} NOT NULL,
  labels {{text}} NOT NULL DEFAULT '{}'
) {{strict}};

CREATE TABLE domain_claim (
  id {{id}},
  project_id {{int}} NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  token_id {{int}} NOT NULL,
  name {{text}} NOT NULL,
  ascii {{text}} NOT NULL,
  secret {{text}} NOT NULL,
  state {{text}} NOT NULL CHECK (state IN ('Pending', 'Completed', 'Failed')),
  detail {{text}} NOT NULL,
  domain_id {{int}},
  created {{int}} NOT NULL,
  checked {{int}},
  expires {{int}} NOT NULL,
  labels {{text}} NOT NULL DEFAULT '{}',
  version {{int}} NOT NULL DEFAULT 1
) {{strict}};
CREATE INDEX domain_claim_project ON domain_claim (project_id, id);
CREATE UNIQUE INDEX domain_claim_pending ON domain_claim (project_id, ascii) WHERE state = 'Pending';

CREATE TABLE withdrawn_domain (
  id {{int}} NOT NULL PRIMARY KEY,
  project_id {{int}} NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  name {{text}} NOT NULL,
  ascii {{text}} NOT NULL,
  date {{int}} NOT NULL,
  record_count {{int}} NOT NULL,
  reason {{text}} NOT NULL,
  zone_file {{text}} NOT NULL,
  labels {{text}} NOT NULL
) {{strict}};
CREATE INDEX withdrawn_domain_project ON withdrawn_domain (project_id, id);

-- A domain whose owner has proven that it is theirs is not taken by a claim for a name above it.
ALTER TABLE domain ADD COLUMN is_proven {{int}} NOT NULL DEFAULT 0 CHECK (is_proven IN (0, 1));
