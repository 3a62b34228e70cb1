-- Where peers meet the edge of a network whose addresses are translated: JSON, an address by the peer's address, "" for every other
-- peer; null: at the edge's own. Each network has a UDP port for WireGuard of its own, since many edges share the machine's address.
ALTER TABLE network ADD COLUMN outside {{text}};
ALTER TABLE network ADD COLUMN wireguard_port {{int}};
UPDATE network SET wireguard_port = 51820 WHERE wireguard IS NOT NULL;
