-- To whom the holder hands the lease over, by its address, and until when no other service may take it.
ALTER TABLE lease ADD COLUMN heir text NOT NULL DEFAULT '';
ALTER TABLE lease ADD COLUMN heir_until timestamptz NOT NULL DEFAULT '-infinity';
-- Whether its holder takes calls by now.
ALTER TABLE lease ADD COLUMN ready boolean NOT NULL DEFAULT true;
-- The services that stand by, by where they are reached. A row counts while its session is there and it was seen lately.
CREATE TABLE standby (
	address text PRIMARY KEY,
	backend integer NOT NULL,
	since   timestamptz NOT NULL,
	seen    timestamptz NOT NULL,
	number  bigint NOT NULL,           -- of the last record that it has followed
	behind  double precision NOT NULL, -- seconds since it had followed all that there was
	skew    double precision NOT NULL  -- seconds by which its clock is certainly ahead of the database's, negative behind it
);
