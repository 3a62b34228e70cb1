-- What servers hold of quotas and of the host is added up with every order: from the index alone, however many there are.
CREATE INDEX server_held ON server (project_id, held_cpu, held_ram, held_hdd) WHERE state <> 'Failed';
