-- Events by type, and those of the records of a domain, in the order of ids: lists and streams with these filters do not read all events.
CREATE INDEX event_type ON event (project_id, type, id);
CREATE INDEX event_record ON event (parent_id, id) WHERE resource = 'record';
