-- Package job owns this: the commands that were started. Their output is in files beside the
-- database. process is the lock of the process that runs it; a running job of a process that
-- is gone was interrupted.
CREATE TABLE jobs (
  seq       INTEGER PRIMARY KEY,
  id        TEXT NOT NULL UNIQUE,
  workspace TEXT NOT NULL,
  epoch     TEXT NOT NULL,
  process   TEXT NOT NULL,
  principal TEXT NOT NULL,
  tool      TEXT NOT NULL,
  call_key  TEXT,             -- idempotency key of the call, if it had one
  kind      TEXT NOT NULL CHECK (kind IN ('exec', 'task')),
  program   TEXT NOT NULL,
  args      TEXT NOT NULL,    -- JSON, the beginning of them
  args_cut  INTEGER NOT NULL,
  cwd       TEXT NOT NULL,
  recipe    TEXT,             -- id of the task
  status    TEXT NOT NULL CHECK (status IN ('running', 'exited', 'canceled', 'timed_out', 'failed_to_start', 'interrupted_on_restart')),
  exit_code INTEGER,
  signal    TEXT,
  isolation TEXT,             -- null until it runs
  notes     TEXT NOT NULL,    -- JSON: what a caller should know of how it ran
  created   INTEGER NOT NULL,
  started   INTEGER,
  ended     INTEGER CHECK ((ended IS NULL) = (status = 'running')),
  timeout   INTEGER NOT NULL, -- milliseconds
  out_bytes INTEGER NOT NULL, -- what it wrote
  err_bytes INTEGER NOT NULL,
  kept      INTEGER NOT NULL  -- bytes of its output on the disk
);
CREATE INDEX jobs_workspace ON jobs (workspace, seq);
CREATE INDEX jobs_running ON jobs (workspace, process) WHERE status = 'running';
CREATE INDEX jobs_kept ON jobs (ended) WHERE kept > 0;
CREATE INDEX jobs_created ON jobs (created);
CREATE INDEX jobs_call ON jobs (workspace, principal, tool, call_key) WHERE call_key IS NOT NULL;
