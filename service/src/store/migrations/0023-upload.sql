-- An image that waits for the content of an upload has the size of its file; its state is New, and no task works on it.
ALTER TABLE image ADD COLUMN upload_size {{int}} CHECK (upload_size > 0);
-- Bytes that are stored on the host, and were acknowledged.
ALTER TABLE image ADD COLUMN upload_received {{int}} NOT NULL DEFAULT 0 CHECK (upload_received >= 0);
ALTER TABLE image ADD COLUMN upload_sha256 {{text}};
-- When the image is deleted unless content arrives.
ALTER TABLE image ADD COLUMN upload_due {{int}};
CREATE INDEX image_upload ON image (upload_due) WHERE upload_size IS NOT NULL;
