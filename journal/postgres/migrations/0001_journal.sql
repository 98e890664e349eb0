CREATE TABLE record (
	number bigint PRIMARY KEY,
	hash   bytea NOT NULL,
	body   bytea NOT NULL
);
-- Where the chain begins: the place before the first record kept.
CREATE TABLE anchor (
	one    integer PRIMARY KEY CHECK (one = 1),
	number bigint NOT NULL,
	hash   bytea NOT NULL
);
-- A snapshot is there when its row is; its parts are written before.
CREATE TABLE snapshot (
	number bigint PRIMARY KEY,
	hash   bytea NOT NULL,
	size   bigint NOT NULL,
	sum    bytea NOT NULL
);
CREATE TABLE part (
	snapshot bigint NOT NULL,
	number   integer NOT NULL,
	data     bytea NOT NULL,
	PRIMARY KEY (snapshot, number)
);
-- Parts are megabytes of numbers: to compress them costs more than it saves.
ALTER TABLE part ALTER data SET STORAGE EXTERNAL;
-- Who may write. The number only grows: it fences writers of earlier leases off.
CREATE TABLE lease (
	one     integer PRIMARY KEY CHECK (one = 1),
	number  bigint NOT NULL,
	holder  text NOT NULL,
	backend integer NOT NULL,
	since   timestamptz NOT NULL,
	until   timestamptz NOT NULL
);
INSERT INTO lease VALUES (1, 0, '', 0, '-infinity', '-infinity');
