-- Whatever takes time. A flow's row lives from Postponed or InProgress to one of the three ends; a keeper's row is Keeping
-- for as long as its subject lives.
--
-- A row is worked on when due_at comes. Claiming it moves due_at to the end of the lease, so a row whose worker died comes
-- due again by itself; lease names the claim, and only a commit that names it too is heard.
CREATE TABLE task (
  id {{id}},
  name {{text}} NOT NULL,
  subject {{text}} NOT NULL,
  subject_id {{int}} NOT NULL,
  project_id {{int}},
  state {{text}} NOT NULL CHECK (state IN ('Postponed', 'InProgress', 'Completed', 'Failed', 'Canceled', 'Keeping')),
  -- The step it is in, by name: positions change with every release, names never.
  step {{text}},
  -- The end it is heading for while everything is being undone.
  ending {{text}} CHECK (ending IN ('Failed', 'Canceled')),
  progress {{int}} NOT NULL CHECK (progress BETWEEN 0 AND 100),
  steps {{text}} NOT NULL,
  input {{text}} NOT NULL,
  facts {{text}} NOT NULL,
  error {{text}},
  -- Why it shall end, asked for while it ran.
  cancel {{text}},
  start_date {{int}} NOT NULL,
  end_date {{int}},
  begun_at {{int}},
  announced_at {{int}} NOT NULL,
  due_at {{int}},
  lease {{text}},
  tries {{int}} NOT NULL,
  -- Raised by every nudge; served is the nudge that the last good run of a keeper had seen.
  wake {{int}} NOT NULL,
  served {{int}} NOT NULL,
  -- Counted from 0 while Postponed; the turn adds the time of day.
  step_until {{int}},
  deadline_at {{int}},
  CHECK ((end_date IS NULL) = (state IN ('Postponed', 'InProgress', 'Keeping'))),
  CHECK ((due_at IS NULL) = (state NOT IN ('InProgress', 'Keeping'))),
  CHECK ((progress = 100) = (state = 'Completed'))
) {{strict}};

CREATE INDEX task_due ON task (due_at) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX task_running ON task (subject, subject_id) WHERE state = 'InProgress';
CREATE INDEX task_waiting ON task (subject, subject_id, id) WHERE state = 'Postponed';
CREATE UNIQUE INDEX task_keeper ON task (name, subject_id) WHERE state = 'Keeping';
CREATE INDEX task_subject ON task (subject, subject_id, id);
