-- The state of one installation. All times are milliseconds since 1970.

-- Single facts: the install secret, the access mode, the ends of the audit chain.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- A workspace is a root that was opened once. dev and ino are the directory it was.
CREATE TABLE workspaces (
  id         TEXT PRIMARY KEY,
  root       TEXT NOT NULL UNIQUE,
  dev        INTEGER NOT NULL,
  ino        INTEGER NOT NULL,
  trust      TEXT NOT NULL, -- an unknown word is inspect
  created    INTEGER NOT NULL,
  last_epoch TEXT NOT NULL,
  last_seen  INTEGER NOT NULL
) WITHOUT ROWID;
-- Every change of trust. How many there are is the version of the workspace's policy.
CREATE TABLE policy_versions (
  id        INTEGER PRIMARY KEY,
  workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  trust     TEXT NOT NULL,
  reason    TEXT NOT NULL CHECK (reason IN ('owner', 'replaced')),
  changed   INTEGER NOT NULL
);
CREATE INDEX policy_versions_workspace ON policy_versions (workspace);
-- What a client may ask for in a workspace in managed mode: a JSON list of scopes. What
-- cannot be read, or names an unknown scope, is none.
CREATE TABLE workspace_clients (
  workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
  client    TEXT NOT NULL,
  scopes    TEXT NOT NULL,
  PRIMARY KEY (workspace, client)
) WITHOUT ROWID;
-- Projects are roots the owner registered, with the directory each was then. A removed
-- one keeps its row.
CREATE TABLE projects (
  id        TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  root      TEXT NOT NULL,
  name      TEXT NOT NULL,
  dev       INTEGER NOT NULL,
  ino       INTEGER NOT NULL,
  born      INTEGER NOT NULL, -- nanoseconds: tells a directory from one that got its number later
  created   INTEGER NOT NULL,
  updated   INTEGER NOT NULL,
  removed   INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX projects_root ON projects (root) WHERE removed IS NULL;
CREATE UNIQUE INDEX projects_identity ON projects (dev, ino, born) WHERE removed IS NULL;

-- What the owner is asked. process is the lock of the process that asked.
CREATE TABLE approvals (
  id        TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  epoch     TEXT NOT NULL,
  process   TEXT NOT NULL,
  principal TEXT NOT NULL,
  tool      TEXT NOT NULL,
  digest    TEXT NOT NULL, -- of tool, arguments and policy version
  summary   TEXT NOT NULL,
  detail    TEXT,          -- JSON for the owner: the arguments, what would be done
  created   INTEGER NOT NULL,
  expires   INTEGER NOT NULL,
  status    TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'denied', 'consumed', 'expired')),
  decided   INTEGER,
  consumed  INTEGER
) WITHOUT ROWID;
CREATE INDEX approvals_digest ON approvals (workspace, principal, digest);
CREATE INDEX approvals_process ON approvals (process, created);
CREATE INDEX approvals_created ON approvals (created);

-- Calls that must not have their effect twice. A row without a receipt whose process is
-- gone is a call of which nobody knows how it ended.
CREATE TABLE idempotency (
  key       TEXT NOT NULL,
  principal TEXT NOT NULL,
  workspace TEXT NOT NULL,
  tool      TEXT NOT NULL,
  digest    TEXT NOT NULL, -- of the arguments
  process   TEXT NOT NULL,
  state     TEXT NOT NULL CHECK (state IN ('reserved', 'done', 'uncertain')),
  receipt   TEXT CHECK ((receipt IS NOT NULL) = (state = 'done')),
  created   INTEGER NOT NULL,
  PRIMARY KEY (key, principal, workspace, tool)
) WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created);

-- Every call, in order, without a gap. hash is that of the row before and of this row.
CREATE TABLE audit (
  id        INTEGER PRIMARY KEY,
  at        INTEGER NOT NULL,
  request   TEXT NOT NULL,
  principal TEXT NOT NULL,
  workspace TEXT NOT NULL,
  tool      TEXT NOT NULL,
  input     TEXT NOT NULL, -- the beginning of the digest of the arguments
  ref       TEXT NOT NULL, -- id of what came of it, such as a changeset
  micros    INTEGER NOT NULL,
  result    TEXT NOT NULL, -- ok, or the code of the failure
  hash      BLOB NOT NULL
);
CREATE TRIGGER audit_fixed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'an audit row never changes'); END;
-- The two ends of the chain: the last row that was pruned, and the last that was added.
CREATE TABLE audit_ends (
  "end" TEXT PRIMARY KEY CHECK ("end" IN ('anchor', 'head')),
  id    INTEGER NOT NULL,
  hash  BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO audit_ends VALUES ('anchor', 0, x''), ('head', 0, x'');

-- Notes of earlier sessions: data, never instructions.
CREATE TABLE todos (
  workspace TEXT PRIMARY KEY,
  list      TEXT NOT NULL, -- JSON
  updated   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE handoffs (
  id        TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  principal TEXT NOT NULL,
  handoff   TEXT NOT NULL, -- JSON
  created   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX handoffs_workspace ON handoffs (workspace, created);

-- Package change owns these: what a caller may apply, what was applied, its journal, and
-- what was there before.
--
-- payload is JSON, what hash is of together with the id. The contents are in a file of their
-- own; bytes is its size.
CREATE TABLE plans (
  id        TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  epoch     TEXT NOT NULL,
  principal TEXT NOT NULL,
  hash      TEXT NOT NULL,
  payload   TEXT NOT NULL,
  bytes     INTEGER NOT NULL,
  created   INTEGER NOT NULL,
  expires   INTEGER NOT NULL,
  used      INTEGER
) WITHOUT ROWID;
CREATE INDEX plans_expires ON plans (expires);
CREATE TABLE changesets (
  seq       INTEGER PRIMARY KEY,
  id        TEXT NOT NULL UNIQUE,
  workspace TEXT NOT NULL,
  epoch     TEXT NOT NULL,
  principal TEXT NOT NULL,
  plan      TEXT NOT NULL,
  kind      TEXT NOT NULL CHECK (kind IN ('apply', 'rollback')),
  status    TEXT NOT NULL CHECK (status IN ('committing', 'committed', 'failed', 'rolled_back', 'recovery_required')),
  undoes    TEXT,             -- of a rollback: the changeset it took back
  summary   TEXT NOT NULL,
  created   INTEGER NOT NULL,
  ended     INTEGER,          -- when it was committed
  error     TEXT,             -- code of the failure
  swept     INTEGER NOT NULL  -- no stage of it is left in the workspace
);
CREATE INDEX changesets_workspace ON changesets (workspace, seq);
CREATE INDEX changesets_created ON changesets (created);
CREATE INDEX changesets_loose ON changesets (workspace) WHERE status IN ('committing', 'recovery_required') OR swept = 0;
CREATE TABLE journal_steps (
  changeset   TEXT NOT NULL REFERENCES changesets (id) ON DELETE CASCADE,
  seq         INTEGER NOT NULL,
  action      TEXT NOT NULL,
  path        TEXT NOT NULL,
  dest        TEXT,
  before_hash TEXT,
  after_hash  TEXT,
  mode        INTEGER NOT NULL, -- permission bits the path has afterwards; of what was there when nothing is
  stage       TEXT,             -- the name beside path under which bytes wait or are kept meanwhile
  PRIMARY KEY (changeset, seq)
) WITHOUT ROWID;
-- Contents that changes replaced or removed, compressed. Small ones are here, so that one
-- commit brings the intent and the backup to the disk; the others are files of their own.
CREATE TABLE backups (
  id      INTEGER PRIMARY KEY,
  hash    TEXT NOT NULL UNIQUE,
  size    INTEGER NOT NULL,
  stored  INTEGER NOT NULL, -- bytes it takes
  inline  INTEGER NOT NULL, -- whether content is here
  content BLOB,
  used    INTEGER NOT NULL  -- when a change last needed it
);
CREATE INDEX backups_used ON backups (used, stored, inline, hash);
