package change

import (
	"time"

	"localmcp/dodo/internal/contract"
)

// gatewayName is the tool the operations are reached through in the small surfaces, but for
// change_history.
const gatewayName = "dodo_write"

// Ops are the operations of this package, in the order of the catalogue. They can be shown
// without a service.
func (s *Service) Ops() []contract.Op {
	return []contract.Op{
		s.writeFile(), s.editFile(), s.applyPatch(), s.replaceInFiles(), s.deletePath(), s.movePath(), s.makeDirectory(),
		s.previewChanges(), s.applyChanges(), s.rollbackChanges(), s.changeHistory(),
	}
}

// mutate describes an operation that changes files.
func mutate(name, title, doc string) contract.Def {
	return contract.Def{
		Name: name, Title: title, Doc: doc, Gateway: gatewayName,
		Scope: contract.ScopeWrite, Class: contract.ClassMutate, Destructive: true,
	}
}

// stamp is a time as answers show it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
