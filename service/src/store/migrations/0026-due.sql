-- Tasks that are due. Few networks are applied at a time, and thousands can be due together: their tasks have an index of their own, so that
-- the engine does not pass over them to find the others.
CREATE INDEX task_due_network ON task (due_at) WHERE due_at IS NOT NULL AND name = 'network.apply';
CREATE INDEX task_due_other ON task (due_at) WHERE due_at IS NOT NULL AND name <> 'network.apply';
DROP INDEX task_due;
-- A start reads the samples of the present five minutes page by page, in the order of servers.
CREATE INDEX sample_of_start ON sample (start, server_id);
DROP INDEX sample_start;
