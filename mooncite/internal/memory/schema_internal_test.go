package memory

import (
	"context"
	"path/filepath"
	"testing"

	"localmcp/internal/sqlitedb"
	"localmcp/internal/testenv"
)

// A migration that changes the schema changes its digest, which is written down.
func TestFingerprintIsOfTheMigrations(t *testing.T) {
	h := testenv.NewHome(t)
	db, err := sqlitedb.Open(t.Context(), filepath.Join(h.Path("run"), databaseName), sqlitedb.Options{ApplicationID: applicationID, Migrations: migrations})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Read(t.Context(), func(c *sqlitedb.Conn) error {
		got, err := schemaDigest(context.Background(), c)
		if got != fingerprint {
			t.Errorf("the schema's digest is %s, written down is %s", got, fingerprint)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
