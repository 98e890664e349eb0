-- Where the holder of the lease is reached; empty if it does not say.
ALTER TABLE lease ADD COLUMN address text NOT NULL DEFAULT '';
-- What a service needs beside its records, each piece whole. The version counts what was written.
CREATE TABLE kept (
	name    text PRIMARY KEY,
	version bigint NOT NULL,
	data    bytea NOT NULL
);
