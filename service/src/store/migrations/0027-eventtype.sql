-- Events by type, by object, and of the records of a domain, in the order of ids: lists and streams with these filters do not read all events.
-- The indexes contain all columns that filters select by, so that events are counted without their rows.
CREATE INDEX event_type ON event (project_id, type, id);
CREATE INDEX event_object ON event (resource, resource_id, id, project_id, type);
CREATE INDEX event_record ON event (parent_id, id, project_id, type) WHERE resource = 'record';
DROP INDEX event_resource;
