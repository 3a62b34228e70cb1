-- A row of the audit may stand for many equal requests that were refused: how many, and when the last one came.
ALTER TABLE audit ADD COLUMN count {{int}} NOT NULL DEFAULT 1;
ALTER TABLE audit ADD COLUMN last_date {{int}};
