-- The few servers that metrics name one by one, and the UDP ports of edges: both were found by reading all servers, and all networks.
CREATE INDEX server_notable ON server (id) WHERE (crashes > 0 or condition <> 'Normal' or backup_failed is not null);
CREATE INDEX network_wireguard ON network (wireguard_port) WHERE wireguard_port IS NOT NULL;
