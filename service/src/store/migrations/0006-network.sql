-- Networks of all kinds count from one counter: public ones with an edge, the shared one of each location (which no project owns)
-- and private ones. Addresses are hexadecimal texts of fixed width (8 digits IPv4, 32 digits IPv6), so that ranges sort.
-- `generation` is what is wished, `applied` what packets obey. `fallback` is the firewall that comes back at `confirm_by` unless the
-- present one is confirmed.
CREATE TABLE network (
  id {{id}},
  project_id {{int}} REFERENCES project (id),
  kind {{text}} NOT NULL CHECK (kind IN ('public', 'shared', 'private')),
  name {{text}} NOT NULL,
  state {{text}} NOT NULL CHECK (state IN ('New', 'Active', 'Deleting')),
  location {{text}} NOT NULL,
  first {{text}} NOT NULL,
  last {{text}} NOT NULL,
  gateway {{text}},
  edge {{text}},
  first6 {{text}},
  is_dhcp {{int}} NOT NULL CHECK (is_dhcp IN (0, 1)),
  bandwidth {{int}} NOT NULL,
  firewall {{text}} NOT NULL,
  fallback {{text}},
  confirm_by {{int}},
  wireguard {{bytes}},
  wireguard_public {{text}},
  generation {{int}} NOT NULL DEFAULT 1,
  applied {{int}} NOT NULL DEFAULT 0,
  error {{text}},
  created {{int}} NOT NULL,
  labels {{text}} NOT NULL DEFAULT '{}',
  version {{int}} NOT NULL DEFAULT 1
) {{strict}};
CREATE INDEX network_project ON network (project_id, kind, id);

-- Blocks and edge addresses that were given back and are not given out again before `until`.
CREATE TABLE retired_block (
  id {{id}},
  first {{text}} NOT NULL,
  last {{text}} NOT NULL,
  until {{int}} NOT NULL
) {{strict}};

-- A server's place in a network. The hardware address follows from the id.
CREATE TABLE link (
  id {{id}},
  network_id {{int}} NOT NULL REFERENCES network (id),
  server_id {{int}} NOT NULL,
  host_name {{text}} NOT NULL,
  ip {{text}} NOT NULL,
  bandwidth {{int}} NOT NULL,
  state {{text}} NOT NULL CHECK (state IN ('New', 'Active')),
  created {{int}} NOT NULL,
  UNIQUE (network_id, ip)
) {{strict}};
CREATE INDEX link_server ON link (server_id, id);

-- `spec` holds no secret, `shared_key` is sealed. `generation` is the network's with which the tunnel came.
CREATE TABLE tunnel (
  id {{id}},
  network_id {{int}} NOT NULL REFERENCES network (id) ON DELETE CASCADE,
  place {{int}} NOT NULL,
  spec {{text}} NOT NULL,
  shared_key {{bytes}},
  generation {{int}} NOT NULL,
  is_up {{int}} NOT NULL DEFAULT 0 CHECK (is_up IN (0, 1)),
  labels {{text}} NOT NULL DEFAULT '{}'
) {{strict}};
CREATE INDEX tunnel_network ON tunnel (network_id, place);
