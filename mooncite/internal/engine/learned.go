package engine

import (
	"context"
	"fmt"
	"strings"
)

// LearnedMemory is what status says of learned memory, which is kept elsewhere and never
// part of what is searched as evidence.
type LearnedMemory struct {
	Kind                   string `json:"kind" enum:"derived_memory_status"`
	Enabled                bool   `json:"enabled"`
	Outcome                string `json:"outcome" enum:"ready|unavailable"`
	ErrorCode              string `json:"errorCode,omitempty" enum:"unsupported_schema|unsafe_storage|busy|unavailable"`
	Message                string `json:"message,omitempty"`
	Database               string `json:"database"`
	SchemaVersion          *int   `json:"schemaVersion" doc:"Null where there is no database yet, or none that can be used."`
	Memories               int64  `json:"memories"`
	Revisions              int64  `json:"revisions"`
	Active                 int64  `json:"active"`
	Archived               int64  `json:"archived"`
	SkillCandidates        int64  `json:"skillCandidates"`
	PendingSkillCandidates int64  `json:"pendingSkillCandidates"`
	StateBytes             int64  `json:"stateBytes"`
}

// ReportMemory makes status say how learned memory stands; f gives nil while it is off.
// Call it before the engine answers. What is wrong there changes no other part of an answer.
func (e *Engine) ReportMemory(f func(context.Context) *LearnedMemory) { e.learned = f }

func (m *LearnedMemory) text() string {
	var b strings.Builder
	version := "none"
	if m.SchemaVersion != nil {
		version = fmt.Sprint(*m.SchemaVersion)
	}
	fmt.Fprintf(&b, "Learned memory: %s, enabled %t; %d memories (%d active, %d archived), %d revisions; %d skill candidates (%d to review); %s, version %s, %d bytes\n",
		m.Outcome, m.Enabled, m.Memories, m.Active, m.Archived, m.Revisions, m.SkillCandidates, m.PendingSkillCandidates, m.Database, version, m.StateBytes)
	if m.ErrorCode != "" {
		line(&b, "Learned memory problem", m.ErrorCode+": "+m.Message)
	}
	return b.String()
}
