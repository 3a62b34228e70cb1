-- Images by the server that they were created from: a due backup of one server does not read those of all others.
CREATE INDEX image_server ON image (server_id, id) WHERE server_id IS NOT NULL;
