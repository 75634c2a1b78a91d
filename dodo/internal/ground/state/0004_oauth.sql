-- Logins of clients over HTTP. No secret, code or token is here, only the SHA-256 of each.

-- A client of the authorization server. One that registered itself (dynamic) is nothing until
-- the owner said yes to a login of it. A metadata client's id is the address of a document;
-- its row is what the document said when the owner last said yes.
CREATE TABLE clients (
  id          TEXT PRIMARY KEY,
  kind        TEXT NOT NULL CHECK (kind IN ('static', 'dynamic', 'metadata')),
  name        TEXT NOT NULL, -- for people; anybody may have any name
  redirects   TEXT NOT NULL, -- JSON list; what cannot be read is no redirect
  method      TEXT NOT NULL CHECK (method IN ('none', 'client_secret_basic', 'client_secret_post')),
  secret      TEXT NOT NULL CHECK ((secret = '') = (method = 'none')), -- SHA-256, hex digits
  refresh     INTEGER NOT NULL,
  application TEXT NOT NULL CHECK (application IN ('native', 'web')),
  created     INTEGER NOT NULL,
  approved    INTEGER,
  CHECK (kind <> 'metadata' OR method = 'none')
) WITHOUT ROWID;
CREATE INDEX clients_waiting ON clients (created) WHERE kind = 'dynamic' AND approved IS NULL;
-- What the owner granted a client, for the whole installation. It counts only together with
-- the key identity-grant:<id> = 2 in meta. scopes is a list with spaces between, not JSON as in
-- workspace_clients; one that names an unknown scope is none. The row stays when it is revoked.
CREATE TABLE grants (
  id       TEXT PRIMARY KEY,
  client   TEXT NOT NULL,
  scopes   TEXT NOT NULL,
  resource TEXT NOT NULL,
  created  INTEGER NOT NULL,
  expires  INTEGER NOT NULL,
  revoked  INTEGER,
  reason   TEXT NOT NULL CHECK ((reason = '') = (revoked IS NULL))
) WITHOUT ROWID;
CREATE INDEX grants_client ON grants (client);
CREATE INDEX grants_expires ON grants (expires);
CREATE TRIGGER grants_fixed BEFORE UPDATE OF id, client, scopes, resource, created, expires ON grants
BEGIN SELECT RAISE(ABORT, 'what was granted never changes'); END;
CREATE TRIGGER grants_over BEFORE UPDATE OF revoked ON grants WHEN OLD.revoked IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a revoked grant stays revoked'); END;
-- Codes that browsers carried to clients. The first use of one, good or bad, is the only one.
CREATE TABLE codes (
  hash      TEXT PRIMARY KEY,
  "grant"   TEXT NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
  redirect  TEXT NOT NULL,
  challenge TEXT NOT NULL, -- S256
  scope     TEXT NOT NULL, -- all that was granted, with openid and offline_access
  nonce     TEXT NOT NULL,
  created   INTEGER NOT NULL,
  expires   INTEGER NOT NULL,
  used      INTEGER
) WITHOUT ROWID;
CREATE INDEX codes_grant ON codes ("grant");
CREATE INDEX codes_expires ON codes (expires);
-- Refresh tokens. A family begins with a code; each use of a generation makes the next one.
-- Tokens of one generation are copies of each other, made by clients that refreshed twice at once.
CREATE TABLE refresh_tokens (
  hash       TEXT PRIMARY KEY,
  "grant"    TEXT NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
  family     TEXT NOT NULL,
  generation INTEGER NOT NULL,
  scope      TEXT NOT NULL,
  created    INTEGER NOT NULL,
  expires    INTEGER NOT NULL,
  used       INTEGER
) WITHOUT ROWID;
CREATE INDEX refresh_tokens_family ON refresh_tokens (family, generation);
CREATE INDEX refresh_tokens_grant ON refresh_tokens ("grant");
CREATE INDEX refresh_tokens_expires ON refresh_tokens (expires);
