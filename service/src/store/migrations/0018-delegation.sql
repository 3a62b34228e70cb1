-- What the parent's name servers said last of a domain, more than whether it is delegated: also that it is so in part.
ALTER TABLE domain ADD COLUMN delegation {{text}} NOT NULL DEFAULT 'Unknown';
