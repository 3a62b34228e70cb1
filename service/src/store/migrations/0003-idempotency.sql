-- Answers of changes that were asked for under an Idempotency-Key, stored in the transaction of the change itself.
-- `sealed` holds the request's fingerprint and the answer, encrypted, since an answer may show a secret once.
CREATE TABLE idempotency (
  project_id {{int}} NOT NULL,
  key {{text}} NOT NULL,
  date {{int}} NOT NULL,
  sealed {{bytes}} NOT NULL,
  PRIMARY KEY (project_id, key)
) {{strict}};

CREATE INDEX idempotency_date ON idempotency (date);
