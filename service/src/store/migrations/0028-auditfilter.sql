-- Entries of the audit by object, by kind of object, by operation and by token, in the order of ids: a list with these filters does not
-- read all entries.
CREATE INDEX audit_object ON audit (project_id, resource, resource_id, id);
CREATE INDEX audit_kind ON audit (project_id, resource, id);
CREATE INDEX audit_operation ON audit (project_id, operation, id);
CREATE INDEX audit_token ON audit (project_id, token_id, id);
