-- A known text, sealed with the key of this installation: a start with another key is refused before anything is written with it.
CREATE TABLE probe (
  id {{id}},
  sealed {{bytes}} NOT NULL
) {{strict}};
