-- Free addresses of the pools, kept up to date in the transaction of each change: blocks of 2^bits addresses, aligned to their size. `area` is
-- the part of a pool that they are in. The service fills it when it starts.
CREATE TABLE free_block (
  area {{text}} NOT NULL,
  first {{text}} NOT NULL,
  bits {{int}} NOT NULL,
  PRIMARY KEY (area, first)
) {{strict}};
CREATE INDEX free_block_size ON free_block (area, bits, first);
CREATE INDEX retired_block_until ON retired_block (until);
