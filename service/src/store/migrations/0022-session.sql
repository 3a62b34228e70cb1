-- Sessions of browsers. Only the hash of the cookie is stored. A session ends with its token.
CREATE TABLE session (
  id {{id}},
  token_id {{int}} NOT NULL REFERENCES token (id) ON DELETE CASCADE,
  name {{text}} NOT NULL,
  hash {{text}} NOT NULL UNIQUE,
  address {{text}} NOT NULL,
  created {{int}} NOT NULL,
  expires_at {{int}} NOT NULL
) {{strict}};
CREATE INDEX session_token ON session (token_id, id);
