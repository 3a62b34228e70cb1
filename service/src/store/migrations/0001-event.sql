-- What happened, in order. Ids grow with time and are never used twice, so that a reader can go on where it stopped.
CREATE TABLE event (
  id {{id}},
  type {{text}} NOT NULL,
  date {{int}} NOT NULL,
  project_id {{int}} NOT NULL,
  resource {{text}} NOT NULL,
  resource_id {{int}} NOT NULL,
  parent_id {{int}},
  token_id {{int}},
  request_id {{text}},
  data {{text}}
) {{strict}};

CREATE INDEX event_project ON event (project_id, id);
CREATE INDEX event_resource ON event (resource, resource_id, id);
