-- Ages are counted up to this time, which moves no faster than twice the time that passes.
CREATE TABLE prune_time (
  id {{int}} NOT NULL PRIMARY KEY,
  date {{int}} NOT NULL
) {{strict}};

-- What grows is deleted from its oldest end.
CREATE INDEX audit_granted ON audit (date, id) WHERE status < 400;
CREATE INDEX audit_refused ON audit (date, id) WHERE status >= 400;
CREATE INDEX task_ended ON task (end_date, id) WHERE end_date IS NOT NULL;
CREATE INDEX domain_version_date ON domain_version (date, domain_id);
CREATE INDEX retired_zone_serial ON retired_zone (serial, ascii);
CREATE INDEX retired_date ON retired (date, kind, name);
CREATE INDEX webhook_delivery_ended ON webhook_delivery (ended, id) WHERE due IS NULL;

-- These keepers are one now.
DELETE FROM task WHERE state = 'Keeping' AND name IN ('account.audit', 'http.keys');
