package evidence

import "localmcp/internal/fault"

// The codes of mooncite's faults. The list is closed and append-only; outcomes of
// operations are values and not part of it.
const (
	CodeUsage       fault.Code = "usage"       // a command was called wrongly
	CodeConfirm     fault.Code = "confirm"     // a command needs a confirmation it did not get
	CodeState       fault.Code = "state"       // the state directory or a file in it cannot be used
	CodeConfig      fault.Code = "config"      // the configuration cannot be used
	CodeSource      fault.Code = "source"      // a source cannot be read
	CodeUnavailable fault.Code = "unavailable" // nothing can be answered at all
	CodeConflict    fault.Code = "conflict"    // something changed since it was last read
	CodeNotFound    fault.Code = "not_found"   // there is no such memory, revision or candidate
	CodeRefused     fault.Code = "refused"     // a rule of learned memory forbids it
	CodeInstall     fault.Code = "install"     // the installation cannot be made, changed or removed
	CodeClient      fault.Code = "client"      // a client's own command failed, or it has another registration
)

// Codes lists them.
func Codes() []fault.Code {
	return []fault.Code{CodeUsage, CodeConfirm, CodeState, CodeConfig, CodeSource, CodeUnavailable, CodeConflict, CodeNotFound, CodeRefused, CodeInstall, CodeClient}
}
