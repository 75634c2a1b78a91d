-- Commands that the clock starts. payload is JSON: what runs, when, where, and for whom;
-- digest is its hash, and what the owner approves. Neither ever changes.
CREATE TABLE schedules (
  id        TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  payload   TEXT NOT NULL,
  digest    TEXT NOT NULL,
  status    TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'paused', 'revoked', 'expired')),
  reason    TEXT NOT NULL, -- why it is paused, in words
  policy    TEXT NOT NULL, -- digest of the rules under which the owner approved it; empty before
  created   INTEGER NOT NULL,
  expires   INTEGER NOT NULL,
  next      INTEGER CHECK (next IS NULL OR status = 'approved'),
  approved  INTEGER
) WITHOUT ROWID;
CREATE INDEX schedules_workspace ON schedules (workspace, created);
CREATE INDEX schedules_next ON schedules (workspace, next) WHERE status = 'approved';
CREATE INDEX schedules_expires ON schedules (expires);
CREATE TRIGGER schedules_fixed BEFORE UPDATE OF id, workspace, payload, digest, created, expires ON schedules
BEGIN SELECT RAISE(ABORT, 'what a schedule says never changes'); END;
-- What became of each time that one was due. A row is there before anything is started, so
-- that no time is ever used twice.
CREATE TABLE schedule_runs (
  schedule TEXT NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
  due      INTEGER NOT NULL,
  status   TEXT NOT NULL CHECK (status IN ('claimed', 'launched', 'ended', 'cancelled', 'skipped', 'failed', 'uncertain')),
  reason   TEXT NOT NULL, -- why it was skipped, or the code of the failure
  job      TEXT NOT NULL, -- id of the job; empty when there was none
  process  TEXT NOT NULL, -- the lock of the process that took it
  taken    INTEGER NOT NULL,
  ended    INTEGER,
  PRIMARY KEY (schedule, due)
) WITHOUT ROWID;
CREATE INDEX schedule_runs_open ON schedule_runs (schedule) WHERE status IN ('claimed', 'launched');
CREATE INDEX schedule_runs_taken ON schedule_runs (taken);
