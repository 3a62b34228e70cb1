-- The names and labels of servers, networks and domains as the filters of their lists compare them. The service fills it in the same
-- transaction, because SQL cannot fold names.
CREATE TABLE term (
  kind {{text}} NOT NULL CHECK (kind IN ('server', 'network', 'domain')),
  project_id {{int}} NOT NULL,
  term {{text}} NOT NULL,
  object_id {{int}} NOT NULL,
  PRIMARY KEY (kind, project_id, term, object_id)
) {{strict}};

-- Servers by address.
CREATE INDEX link_ip ON link (ip);
CREATE INDEX network_first6 ON network (first6) WHERE first6 IS NOT NULL;
