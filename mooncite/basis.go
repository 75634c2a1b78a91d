package main

import (
	"fmt"
	"os"
	"strings"

	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/memory"
	"localmcp/mooncite/internal/source"
)

// basis names the state of what an owner can withdraw under a tool's answers: the list of
// forgotten text, the registered sources, the switch of learned memory, and for the tools of
// that the database, whose own file is written when something is deleted.
func basis(places source.Places) func(tool string) string {
	evidence := []string{engine.TombstonesPath(places), places.RegistryPath(), memory.SettingPath(places.ConfigDir)}
	learned := append(evidence[:len(evidence):len(evidence)], memory.DatabasePath(places.StateDir))
	return func(tool string) string {
		files := evidence
		switch tool {
		case memory.ToolRecall, memory.ToolInspect, memory.ToolWrite, memory.ToolDelete:
			files = learned
		}
		var b strings.Builder
		for _, name := range files {
			if st, err := os.Lstat(name); err == nil {
				fmt.Fprintf(&b, "%d %d", st.Size(), st.ModTime().UnixNano())
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
}
