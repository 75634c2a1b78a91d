package transcript

import (
	"slices"
	"strings"

	"localmcp/mooncite/internal/evidence"
)

// A heldTurn is text typed while the model was busy. It is cited only when it was
// taken out of the queue and did not become a user record or an attachment by the
// time the model speaks again. The zero value is a place in the queue without text.
type heldTurn struct {
	Given   bool            `json:"given,omitempty"` // to emit, by an earlier Finish
	Line    int64           `json:"line,omitempty"`
	Start   int64           `json:"start,omitempty"`
	End     int64           `json:"end,omitempty"`
	Digest  evidence.Digest `json:"digest,omitzero"`
	Project string          `json:"project,omitempty"`
	Entry   Entry           `json:"entry,omitzero"`
}

// Bounds of what is held. A turn beyond them is cited at once, though it may come
// again as a record of its own: rather twice than never.
const (
	maxHeld      = 256 << 10 // bytes, see size
	maxHeldState = 8 << 10   // the same, for a state to be saved
	maxQueue     = 256       // places, those of turns without text too
)

// size is about what it takes to hold a turn, in memory or in a state.
func (h *heldTurn) size() int {
	if len(h.Entry.Spans) == 0 {
		return 0
	}
	n := 400
	for i := range h.Entry.Spans {
		n += 80 + len(h.Entry.Spans[i].Text)
	}
	return n
}

// queue follows what is typed while the model is busy.
func (p *claudeParser) queue(r *Record, m *claudeRecord, emit func(*Record, *Entry) error) error {
	switch op := m.raw.member("operation"); {
	case op.is("enqueue"):
		var h heldTurn
		if e, ok := m.entry(r); ok {
			h = heldTurn{Line: r.Line, Start: r.Start, End: r.End, Digest: r.Digest, Project: p.s.Project, Entry: e}
		}
		return p.enqueue(h, emit)
	case op.is("dequeue"):
		p.dequeue()
	case op.is("remove"):
		at := 0
		if text := strings.TrimSpace(m.raw.member("content").str()); text != "" {
			at = max(0, slices.IndexFunc(p.s.Queue, func(h heldTurn) bool { return h.says(text) }))
		}
		p.remove(at, at+1)
	case op.is("popAll"):
		p.remove(0, len(p.s.Queue))
	}
	return nil
}

// enqueue holds a turn. Of one that cannot be held the place is kept, because places
// are counted.
func (p *claudeParser) enqueue(h heldTurn, emit func(*Record, *Entry) error) error {
	if n := h.size(); p.held+n <= maxHeld {
		p.held += n
		for i := range h.Entry.Spans { // which may be small parts of a large text
			h.Entry.Spans[i].Text = strings.Clone(h.Entry.Spans[i].Text)
		}
	} else {
		if err := p.cite(&h, emit); err != nil {
			return err
		}
		h = heldTurn{}
	}
	p.s.Queue = append(p.s.Queue, h)
	if len(p.s.Queue) <= maxQueue {
		return nil
	}
	h = p.s.Queue[0]
	p.dequeue()
	return p.cite(&h, emit)
}

// dequeue drops the oldest turn of the queue.
func (p *claudeParser) dequeue() {
	if len(p.s.Queue) > 0 {
		p.drop(&p.s.Queue[0])
		p.s.Queue = p.s.Queue[1:]
	}
}

// drop lets go of a turn and leaves its place.
func (p *claudeParser) drop(h *heldTurn) {
	p.held -= h.size()
	*h = heldTurn{}
}

// remove takes the turns from i up to j out of the queue, as far as they are there.
func (p *claudeParser) remove(i, j int) {
	i, j = min(i, len(p.s.Queue)), min(j, len(p.s.Queue))
	for _, h := range p.s.Queue[i:j] {
		if len(h.Entry.Spans) > 0 {
			p.s.Removed = append(p.s.Removed, h)
		}
	}
	p.s.Queue = slices.Delete(p.s.Queue, i, j)
}

// says reports whether a turn is that text, which has no white space around it.
func (h *heldTurn) says(text string) bool {
	return len(h.Entry.Spans) > 0 && strings.TrimSpace(h.Entry.Spans[0].Text) == text
}

// settle compares held turns with the next turn of the conversation: what comes
// again as a record of its own is not cited twice.
func (p *claudeParser) settle(kind string, e *Entry, emit func(*Record, *Entry) error) error {
	if kind == "assistant" {
		return p.release(false, emit)
	}
	if len(e.Spans) == 0 || kind != "user" && kind != "attachment" {
		return nil
	}
	text := strings.TrimSpace(e.Spans[0].Text)
	if i := slices.IndexFunc(p.s.Removed, func(h heldTurn) bool { return h.says(text) }); i >= 0 {
		if p.s.Removed[i].Given {
			return ErrRestart
		}
		p.drop(&p.s.Removed[i])
		p.s.Removed = slices.Delete(p.s.Removed, i, i+1)
		return nil
	}
	for i := range p.s.Queue {
		if p.s.Queue[i].says(text) {
			p.drop(&p.s.Queue[i])
			return nil
		}
	}
	return nil
}

// release emits the turns that were taken out of the queue; keep when the file may
// still show that one of them was sent after all.
func (p *claudeParser) release(keep bool, emit func(*Record, *Entry) error) error {
	for i := range p.s.Removed {
		if h := &p.s.Removed[i]; !h.Given {
			h.Given = true
			if err := p.cite(h, emit); err != nil {
				return err
			}
		}
	}
	if !keep {
		for i := range p.s.Removed {
			p.drop(&p.s.Removed[i])
		}
		p.s.Removed = nil
	}
	return nil
}

// cite emits a turn that is held.
func (p *claudeParser) cite(h *heldTurn, emit func(*Record, *Entry) error) error {
	if len(h.Entry.Spans) == 0 {
		return nil
	}
	p.n.Eligible++
	e := h.Entry
	e.Project = h.Project
	r := Record{Line: h.Line, Start: h.Start, End: h.End, Digest: h.Digest}
	return p.give(&r, &e, false, -1, emit)
}
