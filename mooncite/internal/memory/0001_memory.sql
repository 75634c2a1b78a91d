-- A memory is one thing an agent has learned. Its revisions say it; what stands here is
-- about it and may change. doc is its row in words.
CREATE TABLE memories (
  doc        INTEGER PRIMARY KEY,
  id         TEXT NOT NULL UNIQUE,
  created    INTEGER NOT NULL,                    -- this and all times: milliseconds since 1970
  head       INTEGER NOT NULL CHECK (head >= 1),  -- the current revision
  version    INTEGER NOT NULL CHECK (version >= 1), -- of the metadata: grows with every change of what follows
  archived   INTEGER,                             -- when, or null while it is active
  salience   INTEGER NOT NULL CHECK (salience BETWEEN 0 AND 100),
  activated  INTEGER,                             -- last time, or null
  reinforced INTEGER NOT NULL CHECK (reinforced >= 0), -- how often
  FOREIGN KEY (id, head) REFERENCES revisions (memory, revision) DEFERRABLE INITIALLY DEFERRED
);
-- What an agent wrote. A revision is never changed, only deleted with its memory.
CREATE TABLE revisions (
  memory         TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
  revision       INTEGER NOT NULL CHECK (revision >= 1),
  interpretation TEXT NOT NULL CHECK (length(CAST(interpretation AS BLOB)) BETWEEN 1 AND 8192),
  project        TEXT,          -- null: global
  kind           TEXT NOT NULL CHECK (kind IN ('verified', 'derived', 'current_context', 'unanchored')),
  note           TEXT CHECK (length(CAST(note AS BLOB)) BETWEEN 1 AND 2048),
  derived        INTEGER NOT NULL, -- when it was written
  derivation     TEXT NOT NULL CHECK (derivation = 'explicit_agent'),
  program        TEXT NOT NULL, -- version of mooncite that wrote it
  PRIMARY KEY (memory, revision),
  CHECK ((note IS NOT NULL) = (kind IN ('current_context', 'unanchored')))
);
-- The evidence a revision rests on, as it was when the revision was written. Digests, no text.
CREATE TABLE anchors (
  memory TEXT NOT NULL, revision INTEGER NOT NULL,
  position    INTEGER NOT NULL CHECK (position BETWEEN 0 AND 7),
  evidence_id TEXT NOT NULL, evidence_uri TEXT NOT NULL,
  origin      TEXT NOT NULL, root TEXT NOT NULL,
  project     TEXT NOT NULL, session TEXT NOT NULL,
  record      TEXT NOT NULL, -- SHA-256 of the record's bytes
  span        TEXT NOT NULL, -- SHA-256 of the span's text
  context     TEXT NOT NULL, -- digest of origin, root, project, session, role and kind
  role        TEXT NOT NULL, kind TEXT NOT NULL,
  parent      TEXT NOT NULL, branch TEXT NOT NULL, compaction TEXT NOT NULL,
  PRIMARY KEY (memory, revision, position),
  UNIQUE (memory, revision, evidence_id),
  FOREIGN KEY (memory, revision) REFERENCES revisions (memory, revision) ON DELETE CASCADE
);
CREATE INDEX anchors_evidence ON anchors (evidence_id);
CREATE INDEX anchors_session ON anchors (session);
-- What an inspection found wrong with an anchor, until one finds it verified.
CREATE TABLE observed (
  memory TEXT NOT NULL, revision INTEGER NOT NULL, position INTEGER NOT NULL,
  state  TEXT NOT NULL CHECK (state IN ('content_mismatch', 'context_mismatch', 'deauthorized')),
  at     INTEGER NOT NULL,
  PRIMARY KEY (memory, revision, position),
  FOREIGN KEY (memory, revision, position) REFERENCES anchors (memory, revision, position) ON DELETE CASCADE
);
-- From a revision to the exact revisions it is derived from.
CREATE TABLE relations (
  memory TEXT NOT NULL, revision INTEGER NOT NULL,
  position        INTEGER NOT NULL CHECK (position BETWEEN 0 AND 7),
  parent          TEXT NOT NULL,
  parent_revision INTEGER NOT NULL,
  relation        TEXT NOT NULL CHECK (relation IN ('supports', 'contradicts', 'refines', 'supersedes')),
  reason          TEXT NOT NULL CHECK (length(CAST(reason AS BLOB)) BETWEEN 1 AND 1024),
  PRIMARY KEY (memory, revision, position),
  UNIQUE (memory, revision, parent, parent_revision),
  FOREIGN KEY (memory, revision) REFERENCES revisions (memory, revision) ON DELETE CASCADE,
  FOREIGN KEY (parent, parent_revision) REFERENCES revisions (memory, revision) ON DELETE RESTRICT,
  CHECK (NOT (memory = parent AND revision = parent_revision))
);
CREATE INDEX relations_parent ON relations (parent, parent_revision, memory, revision);
-- Skills that an agent proposes and the owner may take over by hand. Nothing here installs one.
CREATE TABLE candidates (
  id           TEXT PRIMARY KEY,
  created      INTEGER NOT NULL,
  name         TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 80),
  description  TEXT NOT NULL CHECK (length(CAST(description AS BLOB)) BETWEEN 1 AND 2048),
  instructions TEXT NOT NULL CHECK (length(CAST(instructions AS BLOB)) BETWEEN 1 AND 16384),
  state        TEXT NOT NULL CHECK (state IN ('pending_review', 'approved', 'rejected')),
  note         TEXT CHECK (length(CAST(note AS BLOB)) BETWEEN 1 AND 2048),
  reviewed     INTEGER,
  CHECK ((state = 'pending_review') = (reviewed IS NULL)),
  CHECK ((note IS NULL) = (reviewed IS NULL))
);
CREATE TABLE candidate_sources (
  candidate TEXT NOT NULL REFERENCES candidates (id) ON DELETE CASCADE,
  position  INTEGER NOT NULL CHECK (position BETWEEN 0 AND 7),
  memory TEXT NOT NULL, revision INTEGER NOT NULL,
  PRIMARY KEY (candidate, position),
  UNIQUE (candidate, memory, revision),
  FOREIGN KEY (memory, revision) REFERENCES revisions (memory, revision) ON DELETE RESTRICT
);
CREATE INDEX candidate_sources_memory ON candidate_sources (memory, revision, candidate);
CREATE TRIGGER revisions_fixed BEFORE UPDATE ON revisions BEGIN SELECT RAISE(ABORT, 'a revision never changes'); END;
CREATE TRIGGER anchors_fixed BEFORE UPDATE ON anchors BEGIN SELECT RAISE(ABORT, 'an anchor never changes'); END;
CREATE TRIGGER relations_fixed BEFORE UPDATE ON relations BEGIN SELECT RAISE(ABORT, 'a relation never changes'); END;
CREATE TRIGGER sources_fixed BEFORE UPDATE ON candidate_sources BEGIN SELECT RAISE(ABORT, 'the sources of a candidate never change'); END;
CREATE TRIGGER artifacts_fixed BEFORE UPDATE OF name, description, instructions ON candidates BEGIN SELECT RAISE(ABORT, 'the artifact of a candidate never changes'); END;
CREATE TABLE facts (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
-- The interpretations of the current revisions, as tokens.
CREATE VIRTUAL TABLE words USING fts5 (tokens, content = '', contentless_delete = 1, detail = full, tokenize = 'ascii');
