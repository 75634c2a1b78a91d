package source

import (
	"path"
	"strings"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
)

// Why something of the history is not read. Status counts failures by origin and
// these reasons; the list is closed.
const (
	Configuration   fault.Code = "source_configuration_failure"
	RootUnavailable fault.Code = "source_root_unavailable"
	Discovery       fault.Code = "source_discovery_failure"
	Limit           fault.Code = "source_limit_exceeded"
	Metadata        fault.Code = "source_metadata_failure"
	Changed         fault.Code = "source_changed_during_refresh"
	ReadOrParse     fault.Code = "source_read_or_parse_failure"
)

// Describe names a file or directory below a root for people: origin, base name and
// eight hex digits, never a path. It is one line, whatever the name holds.
func Describe(o evidence.Origin, rootDigest, rel string) string {
	name := oneLine.Replace(evidence.Visible(path.Base(rel)))
	return string(o) + " " + name + " (" + evidence.ShortName(evidence.StoredPath(o, rootDigest, rel)) + ")"
}

// oneLine escapes what evidence.Visible leaves, in its form.
var oneLine = strings.NewReplacer("\n", `\u{a}`, "\t", `\u{9}`)
