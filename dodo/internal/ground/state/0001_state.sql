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

-- Package change owns these: what a caller may apply, what was applied, and its journal.
CREATE TABLE plans (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  epoch        TEXT NOT NULL,
  principal    TEXT NOT NULL,
  plan_hash    TEXT NOT NULL,
  payload      TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  invalidated_at INTEGER
) WITHOUT ROWID;
CREATE INDEX plans_workspace ON plans (workspace_id, created_at);
CREATE TABLE changesets (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  epoch        TEXT NOT NULL,
  plan_id      TEXT,
  principal    TEXT NOT NULL,
  status       TEXT NOT NULL,
  kind         TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  committed_at INTEGER,
  summary      TEXT NOT NULL,
  error        TEXT
) WITHOUT ROWID;
CREATE INDEX changesets_workspace ON changesets (workspace_id, created_at);
CREATE INDEX changesets_open ON changesets (workspace_id, status) WHERE status IN ('committing', 'recovery_required');
CREATE TABLE journal_steps (
  changeset_id TEXT NOT NULL REFERENCES changesets (id) ON DELETE CASCADE,
  seq          INTEGER NOT NULL,
  op           TEXT NOT NULL,
  path         TEXT NOT NULL,
  dest_path    TEXT,
  before_hash  TEXT,
  after_hash   TEXT,
  before_mode  INTEGER,
  after_mode   INTEGER,
  backup_path  TEXT,
  state        TEXT NOT NULL,
  PRIMARY KEY (changeset_id, seq)
) WITHOUT ROWID;
