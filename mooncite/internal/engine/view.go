package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
)

// Words of trust and coverage.
const (
	fullVerified    = "full_verified"
	appendTrusted   = "append_trusted"
	complete        = "complete"
	partial         = "partial"
	emptyGeneration = "empty"
)

// A view is one state of the index as one request may see it: authorized sources
// only, with what is known of their freshness.
type view struct {
	e       *Engine
	ctx     context.Context
	snap    *index.Snapshot // nil: nothing was ever published
	fresh   *freshness
	sources map[int64]*index.Source // authorized ones
	owned   bool                    // sources is the view's own map
}

// read runs f on one state of the index.
func (e *Engine) read(ctx context.Context, fresh *freshness, f func(*view) error) error {
	return e.store.Read(ctx, func(snap *index.Snapshot) error {
		v := &view{e: e, ctx: ctx, snap: snap, fresh: fresh}
		if snap != nil {
			v.sources = snap.Sources()
			for id, s := range v.sources {
				if !v.authorized(s.Origin, s.Root) {
					v.withdraw(id)
				}
			}
			for _, s := range fresh.vanished(snap) {
				gone := *s
				gone.Present = false
				v.own()[s.ID] = &gone
			}
		}
		return f(v)
	})
}

// withdraw takes a source out of the view.
func (v *view) withdraw(id int64) { delete(v.own(), id) }

// own gives the view a map of sources that may be changed; the index's own one stays
// as it is.
func (v *view) own() map[int64]*index.Source {
	if !v.owned {
		v.sources, v.owned = maps.Clone(v.snap.Sources()), true
	}
	return v.sources
}

func (v *view) authorized(o evidence.Origin, root string) bool { return v.fresh.authorized(o, root) }

// hit reads a document; nil when it is not there or not authorized any more.
func (v *view) hit(doc int64) (*hit, error) {
	h, err := v.bare(doc)
	if err != nil || h == nil {
		return nil, err
	}
	return h, h.read()
}

// bare is a hit without its text.
func (v *view) bare(doc int64) (*hit, error) {
	sp, err := v.snap.Span(doc)
	if err != nil || sp == nil {
		return nil, err
	}
	u, err := v.snap.Unit(sp.Unit)
	if err != nil || u == nil {
		return nil, err
	}
	src := v.sources[u.Source]
	if src == nil {
		return nil, nil
	}
	return &hit{doc: doc, span: sp, src: src, unit: u, at: -1}, nil
}

// read reads a bare hit's text. Several hits may be read at a time.
func (h *hit) read() (err error) {
	h.text, err = h.span.Text()
	h.echo = isEcho(h.text)
	return err
}

// passes reports whether a hit is inside a filter.
func (v *view) passes(h *hit, f *index.Filter) bool {
	s := h.span
	return (f.Role == "" || f.Role == s.Role) && (f.Origin == "" || f.Origin == h.src.Origin) && (f.Project == 0 || f.Project == s.Project) &&
		(f.Units == nil || slices.Contains(f.Units, s.Unit)) && f.Holds(s.Time)
}

// locate finds the span of a citation; nil when the index has none.
func (v *view) locate(l evidence.Locator) (*hit, error) {
	if v.snap == nil {
		return nil, nil
	}
	if doc, ok := v.e.recent.get(v.snap.Number(), l); ok {
		return v.hit(doc)
	}
	for _, src := range v.sources {
		if src.Origin != l.Origin || v.e.namespace(src) != l.Namespace {
			continue
		}
		units, err := v.snap.Units(src.ID)
		if err != nil {
			return nil, err
		}
		for i := range units {
			if evidence.IDPart(units[i].Session) != l.Session {
				continue
			}
			doc, ok, err := v.snap.Find(units[i].ID, func(entry string) bool { return evidence.IDPart(entry) == l.Entry }, l.Ordinal)
			if err != nil {
				return nil, err
			}
			if ok {
				return v.hit(doc)
			}
		}
	}
	return nil, nil
}

func (v *view) evidenceID(h *hit) string {
	id := evidence.EvidenceID(h.src.Origin, v.e.namespace(h.src), h.unit.Session, h.span.Entry, h.span.Ordinal)
	if l, ok := evidence.ParseLocator(id); ok && v.snap != nil {
		v.e.recent.put(v.snap.Number(), l, h.doc)
	}
	return id
}

func (v *view) evidenceURI(h *hit) string {
	return evidence.EvidenceURI(h.src.Origin, v.e.namespace(h.src), h.unit.Session, h.span.Entry, h.span.Ordinal)
}

// generation is a digest of everything projected of authorized sources.
func (v *view) generation() string {
	if v.snap == nil || len(v.sources) == 0 {
		return emptyGeneration
	}
	return v.e.generation.of(v)
}

// digestGeneration computes it.
func (v *view) digestGeneration() string {
	lines := make([]string, 0, len(v.sources))
	for _, s := range v.sources {
		lines = append(lines, s.StoredPath()+":"+s.Generation())
	}
	slices.Sort(lines)
	d := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(d[:])
}

func (v *view) trust() string {
	for _, s := range v.sources {
		if s.Chained {
			return appendTrusted
		}
	}
	return fullVerified
}

// coverage is complete when every authorized source is projected as it stands.
func (v *view) coverage() string {
	any := index.Any()
	if len(v.gaps(&any)) > 0 {
		return partial
	}
	return complete
}

// searched says what an answer within a filter rests on.
func (v *view) searched(f *index.Filter) Searched {
	s := Searched{Pending: v.fresh.pending()}
	newest := evidence.NoTime
	for _, src := range v.sources {
		if f.Origin != "" && f.Origin != src.Origin {
			continue
		}
		if src.Fault != "" {
			s.Pending++
		}
		if src.Spans > 0 || src.Fault == "" {
			s.Sources++
		}
		newest = max(newest, src.Identity.MtimeNS/1e6)
	}
	s.UpTo = stamp(newest)
	return s
}

// gaps names, in plain words, what could not be searched although it is inside a
// filter. Without gaps an answer is conclusive.
func (v *view) gaps(f *index.Filter) []string {
	var out []string
	add := func(n int64, one, many string) {
		switch {
		case n == 1:
			out = append(out, "1 "+one)
		case n > 1:
			out = append(out, fmt.Sprintf("%d %s", n, many))
		}
	}
	if v.fresh.busy() {
		out = append(out, "newer text is still being read")
	} else {
		add(int64(v.fresh.pending()), "source file has newer text that is not read yet", "source files have newer text that is not read yet")
	}
	var failed, oversized, exports int64
	for _, src := range v.sources {
		if f.Origin != "" && f.Origin != src.Origin {
			continue
		}
		if src.Fault != "" {
			failed++
		}
		oversized += src.Counts.Oversized
		if src.Origin == evidence.ChatGPT && src.Fault == "" && src.Counts.Malformed > 0 {
			exports++
		}
	}
	add(failed, "source file cannot be read as it stands; mooncite_status names it", "source files cannot be read as they stand; mooncite_status names them")
	add(exports, "export has damaged parts, which cannot be searched", "exports have damaged parts, which cannot be searched")
	add(oversized, "record is too long or too damaged to be searched as a whole", "records are too long or too damaged to be searched as a whole")
	for _, g := range v.fresh.groups {
		if f.Origin == "" || g.Origin == string(f.Origin) || g.Origin == unknownOrigin {
			out = append(out, g.sentence())
		}
	}
	return out
}
