-- A list of the servers in one state reads only these: a client that waits for new servers requests it several times a second.
CREATE INDEX server_state ON server (project_id, state, id);
