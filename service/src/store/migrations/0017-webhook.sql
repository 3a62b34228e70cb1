-- Webhooks and what they have to deliver. The events are the source: a webhook has taken all up to its cursor, and a row is one event
-- that waits, or one of the last that were sent or given up.
CREATE TABLE webhook (
  id {{id}},
  project_id {{int}} NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  url {{text}} NOT NULL,
  -- JSON list of names, also with * at the end.
  types {{text}} NOT NULL,
  secret {{bytes}} NOT NULL,
  state {{text}} NOT NULL CHECK (state IN ('Active', 'Failed')),
  cursor {{int}} NOT NULL,
  failing_since {{int}},
  error {{text}},
  created {{int}} NOT NULL,
  labels {{text}} NOT NULL DEFAULT '{}',
  version {{int}} NOT NULL DEFAULT 1
) {{strict}};
CREATE INDEX webhook_project ON webhook (project_id, id);

CREATE TABLE webhook_delivery (
  id {{id}},
  webhook_id {{int}} NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
  event_id {{int}} NOT NULL,
  type {{text}} NOT NULL,
  resource {{text}} NOT NULL,
  resource_id {{int}} NOT NULL,
  state {{text}} NOT NULL CHECK (state IN ('Waiting', 'Delivered', 'Failed')),
  is_resend {{int}} NOT NULL DEFAULT 0 CHECK (is_resend IN (0, 1)),
  attempts {{int}} NOT NULL DEFAULT 0,
  status {{int}},
  error {{text}},
  created {{int}} NOT NULL,
  -- When it is tried next; null: it has ended.
  due {{int}},
  ended {{int}}
) {{strict}};
CREATE INDEX webhook_delivery_newest ON webhook_delivery (webhook_id, id);
CREATE INDEX webhook_delivery_waiting ON webhook_delivery (webhook_id, id) WHERE due IS NOT NULL;
