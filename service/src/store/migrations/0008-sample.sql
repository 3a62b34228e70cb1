-- How busy servers were, five minutes a row: points of ten seconds each while it is young, one for all of it when it is older than a day.
CREATE TABLE sample (
  server_id {{int}} NOT NULL REFERENCES server (id) ON DELETE CASCADE,
  start {{int}} NOT NULL,
  points {{int}} NOT NULL,
  -- Floats of 32 bits, little end first: point by point its six figures, NaN where nothing was measured.
  figures {{bytes}} NOT NULL,
  PRIMARY KEY (server_id, start)
) {{strict}};
CREATE INDEX sample_start ON sample (start);
CREATE INDEX sample_fine ON sample (start) WHERE points > 1;
