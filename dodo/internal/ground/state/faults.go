package state

import (
	"errors"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/internal/sqlitedb"
)

// meanings are the codes callers see for those of the packages below.
var meanings = []struct {
	of        fault.Code
	code      fault.Code
	retryable bool
	sentence  string // empty: the fault's own
}{
	{sqlitedb.Busy, contract.Timeout, true, "another process kept the state database busy"},
	{sqlitedb.Full, contract.ResourceLimit, true, ""},
	{sqlitedb.Damaged, contract.InternalError, false, "the state database is damaged; it was left as it is"},
	{sqlitedb.Newer, contract.MigrationReviewRequired, false, "the state database was made by a newer version of dodo; it was left as it is"},
	{sqlitedb.Foreign, contract.Conflict, false, "the state database was made by another program; it was left as it is"},
	{sqlitedb.Unusable, contract.InternalError, false, "the state database cannot be read or written"},
	{privdir.Unsafe, contract.Forbidden, false, ""},
	{privdir.Unusable, contract.InternalError, false, ""},
	{privdir.Busy, contract.Timeout, true, ""},
	{safefile.NotSupported, contract.NotSupported, false, ""},
}

// Fault gives an error of the database, or of the directory it is in, its code of
// contract. Others pass unchanged, nil too. Hints stay, and the cause is kept for the log.
func Fault(err error) error {
	for _, m := range meanings {
		if !errors.Is(err, m.of) {
			continue
		}
		from := fault.From(err)
		f := fault.Wrap(m.code, err, "%s", m.sentence).WithHint("%s", from.Hint)
		if m.sentence == "" {
			f.Msg = from.Msg
		}
		f.Retryable = m.retryable
		return f
	}
	return err
}

// damaged is the fault of a database that SQLite can read and we cannot believe.
func damaged(why string) error {
	return fault.New(contract.InternalError, "the state database is damaged: %s; it was left as it is", why).WithHint("%s", wayOut)
}
