package engine

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"
)

// Bounds of what is kept to add the times of a workflow.
const (
	keptTimings = 64
	timingLife  = 10 * time.Minute
)

// Timing is how long an answer took, when asked.
type Timing struct {
	Enabled    bool     `json:"enabled"`
	WorkflowID string   `json:"workflowId,omitempty" doc:"Pass as workflow_id to mooncite_inspect to add the two times."`
	RecallMs   *float64 `json:"recallMs,omitempty"`
	InspectMs  *float64 `json:"inspectMs,omitempty"`
	CombinedMs *float64 `json:"combinedMs,omitempty"`
	Combined   *bool    `json:"combined,omitempty"`
	Warning    string   `json:"warning,omitempty"`
	ExpiresAt  string   `json:"expiresAt,omitempty"`
}

// timings remembers how long recent recalls took.
type timings struct {
	now func() time.Time

	mu   sync.Mutex // guards kept
	kept []timed    // oldest first
}

type timed struct {
	id      string
	took    time.Duration
	expires time.Time
}

func ms(d time.Duration) *float64 {
	v := float64(d.Microseconds()) / 1000
	return &v
}

// newUUID makes a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (t *timings) recall(took time.Duration) *Timing {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := timed{newUUID(), took, t.now().Add(timingLife)}
	t.kept = append(t.kept, k)
	if len(t.kept) > keptTimings {
		t.kept = t.kept[1:]
	}
	return &Timing{Enabled: true, WorkflowID: k.id, RecallMs: ms(took), ExpiresAt: k.expires.UTC().Format("2006-01-02T15:04:05.000Z")}
}

func (t *timings) inspect(workflow string, took time.Duration) *Timing {
	out := &Timing{Enabled: true, InspectMs: ms(took), Combined: new(bool)}
	if workflow == "" {
		return out
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.kept {
		if k.id == workflow && t.now().Before(k.expires) {
			*out.Combined = true
			out.WorkflowID, out.RecallMs, out.CombinedMs = workflow, ms(k.took), ms(k.took+took)
			return out
		}
	}
	out.Warning = "no recall with this workflow_id is remembered"
	return out
}
