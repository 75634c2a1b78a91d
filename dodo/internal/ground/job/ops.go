package job

import "localmcp/dodo/internal/contract"

// The tools the operations are reached through in the small surfaces.
const (
	execGateway = "dodo_exec"
	readGateway = "dodo_read"
)

// Ops are the operations of this package, in the order of the catalogue. They can be shown
// without a service.
func (s *Service) Ops() []contract.Op {
	return []contract.Op{
		s.runCommand(), s.runCommands(), s.runTask(), s.execCommand(),
		s.jobStatus(), s.jobOutput(), s.jobWait(), s.jobInput(), s.jobCancel(), s.listJobs(),
	}
}

// runs describes an operation that starts commands. What a command does nobody knows: it may
// destroy, and reach the world.
func runs(name, title, doc string) contract.Def {
	return contract.Def{
		Name: name, Title: title, Doc: doc, Gateway: execGateway,
		Scope: contract.ScopeExec, Class: contract.ClassExec, Destructive: true, OpenWorld: true,
	}
}

// looks describes an operation that reads.
func looks(name, title, doc string) contract.Def {
	return contract.Def{
		Name: name, Title: title, Doc: doc, Gateway: readGateway,
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}
}
