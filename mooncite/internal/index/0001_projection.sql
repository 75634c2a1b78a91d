-- What was read and how far. One row a file; digests instead of root paths.
CREATE TABLE roots (
  id     INTEGER PRIMARY KEY,
  origin TEXT NOT NULL,
  digest TEXT NOT NULL,
  UNIQUE (origin, digest)
);
CREATE TABLE projects (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE sources (
  id       INTEGER PRIMARY KEY,
  root     INTEGER NOT NULL REFERENCES roots (id),
  rel      TEXT NOT NULL,
  dev      INTEGER NOT NULL, ino INTEGER NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL,
  seen     INTEGER NOT NULL, -- when that was looked at, nanoseconds since 1970
  offset   INTEGER NOT NULL, -- bytes admitted
  line     INTEGER NOT NULL, -- physical lines admitted
  prefix   BLOB NOT NULL,    -- SHA-256 of the admitted bytes, or the chain behind appends
  chained  INTEGER NOT NULL, -- 1: prefix is an append chain, the source is append_trusted
  present  INTEGER NOT NULL, -- 0: the file is gone, its text stays
  fault    TEXT NOT NULL,    -- reason why the present file is not the projection, or ''
  spans    INTEGER NOT NULL,
  session  TEXT NOT NULL, project INTEGER NOT NULL, parent TEXT NOT NULL, title TEXT NOT NULL, leaf TEXT NOT NULL,
  subagent INTEGER NOT NULL,
  compact  INTEGER NOT NULL, -- line of the last compaction, or 0
  counts   TEXT NOT NULL,    -- JSON
  state    BLOB,             -- of the parser
  pub      INTEGER NOT NULL, -- publication that last changed the row
  UNIQUE (root, rel)
);
-- A unit is what is replaced as a whole: a JSONL file, or one conversation of an export.
CREATE TABLE units (
  id      INTEGER PRIMARY KEY,
  source  INTEGER NOT NULL REFERENCES sources (id) DEFERRABLE INITIALLY DEFERRED,
  session TEXT NOT NULL,
  start   INTEGER NOT NULL, size INTEGER NOT NULL, line INTEGER NOT NULL, -- where its spans' ranges count from
  digest  BLOB NOT NULL,    -- SHA-256 of a conversation's bytes; empty for files
  spans   INTEGER NOT NULL,
  records INTEGER NOT NULL, eligible INTEGER NOT NULL -- of a conversation
);
CREATE INDEX units_source ON units (source);
CREATE INDEX units_session ON units (session);
-- Runs of spans. first is the document number of the first one.
CREATE TABLE blocks (
  first INTEGER PRIMARY KEY,
  unit  INTEGER NOT NULL,
  count INTEGER NOT NULL,
  meta  BLOB NOT NULL,
  text  BLOB NOT NULL
);
CREATE INDEX blocks_unit ON blocks (unit);
-- Months that spans fall into (year * 12 + month; 0: no time).
CREATE TABLE months (
  month INTEGER PRIMARY KEY
);
CREATE TABLE facts (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (tokens, content = '', contentless_delete = 1, detail = full, tokenize = 'ascii');
