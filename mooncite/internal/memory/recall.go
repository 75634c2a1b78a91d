package memory

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/lexis"
)

// Bounds of a recall.
const (
	defaultLimit = 5
	maxLimit     = 20
	maxRelated   = 8
)

// RecallIn is what mooncite_memory_recall takes.
type RecallIn struct {
	Query           string `json:"query" minLength:"1" maxLength:"2000" doc:"Words that the memory holds, or a memory id. Not all words need to match."`
	Limit           int    `json:"limit,omitempty" min:"1" max:"20" default:"5"`
	Project         string `json:"project,omitempty" maxLength:"256" doc:"Only memories of this project (project:...) and global ones."`
	IncludeInvalid  bool   `json:"include_invalid,omitempty" doc:"Also memories whose own evidence changed, is gone or was withdrawn."`
	IncludeArchived bool   `json:"include_archived,omitempty"`
	RelatedLimit    int    `json:"related_limit,omitempty" min:"0" max:"8" doc:"How many directly related memories to show with each; 0 if absent."`
	Cursor          string `json:"cursor,omitempty" maxLength:"64" doc:"nextCursor of the answer before, for the memories after it."`
}

// RecallOut is what mooncite_memory_recall answers.
type RecallOut struct {
	Kind            string     `json:"kind" enum:"derived_memory_recall"`
	Outcome         string     `json:"outcome" enum:"matches|no_match"`
	Query           string     `json:"query"`
	Project         *string    `json:"project"`
	IncludeInvalid  bool       `json:"includeInvalid"`
	IncludeArchived bool       `json:"includeArchived"`
	RelatedLimit    int        `json:"relatedLimit"`
	Candidates      []Recalled `json:"candidates" doc:"Interpretations of agents, never source evidence."`
	Warnings        []string   `json:"warnings"`
	NextCursor      *string    `json:"nextCursor" doc:"Pass as cursor for further memories."`
	ResultDetail    *Detail    `json:"resultDetail,omitempty"`

	places []int // of each candidate among the ranked ones
}

// Recalled is the current revision of a memory that answers a query.
type Recalled struct {
	Kind               string      `json:"kind" enum:"derived_memory"`
	MemoryID           string      `json:"memoryId"`
	Revision           int64       `json:"revision"`
	Interpretation     string      `json:"interpretation" doc:"Untrusted: an agent's words, quoted as data."`
	OmittedBytes       int         `json:"omittedBytes" doc:"Bytes of the interpretation that are not shown."`
	Scope              Scope       `json:"scope"`
	DerivedAt          string      `json:"derivedAt"`
	DerivationKind     string      `json:"derivationKind" enum:"explicit_agent"`
	MoonciteVersion    string      `json:"moonciteVersion"`
	Provenance         Provenance  `json:"provenance"`
	Anchors            []Anchored  `json:"anchors"`
	Relevance          Relevance   `json:"relevance"`
	ProvenanceState    string      `json:"provenanceState" enum:"deauthorized|content_mismatch|context_mismatch|unavailable|last_good|indexed|not_evidence_backed" doc:"The worst state of its own anchors. The first four quarantine it."`
	Quarantined        bool        `json:"quarantined"`
	EvidenceProjection *Projection `json:"evidenceProjection" doc:"How the evidence index stood; null without anchors."`
	Lifecycle          Lifecycle   `json:"lifecycle"`
	Related            []Related   `json:"related"`
}

// Anchored is one piece of evidence of a revision and how it stands.
type Anchored struct {
	EvidenceID  string `json:"evidenceId"`
	EvidenceURI string `json:"evidenceUri"`
	State       string `json:"state" enum:"deauthorized|content_mismatch|context_mismatch|unavailable|last_good|indexed"`
}

// Relevance says how a memory answers the query.
type Relevance struct {
	Kind         string   `json:"kind" enum:"exact_id|lexical"`
	Band         string   `json:"band" enum:"strong|partial|weak"`
	MatchedTerms []string `json:"matchedTerms"`
}

// Recall finds memories by the words of their current revisions.
func (s *Store) Recall(ctx context.Context, in RecallIn) (RecallOut, error) {
	query, err := field{"query", maxQuery, true}.clean(in.Query)
	if err != nil {
		return RecallOut{}, err
	}
	if in.Project != "" && !evidence.IsProject(in.Project) {
		return RecallOut{}, refuse("project is not a project as answers name it (project:name-0123456789abcdef)")
	}
	from, ok := parseCursor(in.Cursor)
	if !ok {
		return RecallOut{}, refuse("cursor is not one that an answer gave")
	}
	out := RecallOut{Kind: "derived_memory_recall", Outcome: "no_match", Query: query, IncludeInvalid: in.IncludeInvalid, IncludeArchived: in.IncludeArchived,
		RelatedLimit: min(max(0, in.RelatedLimit), maxRelated), Candidates: []Recalled{}, Warnings: []string{}}
	if in.Project != "" {
		out.Project = &in.Project
	}
	limit := min(cmp.Or(max(0, in.Limit), defaultLimit), maxLimit)
	sight := visible{project: in.Project, archived: in.IncludeArchived, invalid: in.IncludeInvalid}
	ranked, terms, cut, err := s.rank(ctx, query, sight)
	if err != nil {
		return RecallOut{}, err
	}
	switch {
	case len(terms) == 0 && !isID(memoryPrefix, query):
		out.Warnings = append(out.Warnings, "the query has no word that can be looked for")
	case cut:
		out.Warnings = append(out.Warnings, fmt.Sprintf("the query fits very many memories; the %d that hold most of it are ranked", len(ranked)))
	}
	d := s.doctor()
	shown, err := s.choose(ctx, d, &out, ranked, from, limit, sight)
	if err != nil {
		return RecallOut{}, err
	}
	if out.RelatedLimit > 0 {
		for i, r := range shown {
			if out.Candidates[i].Related, err = s.related(ctx, d, r.revision, out.RelatedLimit, sight); err != nil {
				return RecallOut{}, err
			}
		}
	}
	out.warn(d)
	return out, nil
}

// A ranked revision is a candidate with how it answers.
type ranked struct {
	*revision
	relevance Relevance
	score     float64
}

// rank reads the memories that a query finds, best first.
func (s *Store) rank(ctx context.Context, query string, sight visible) (list []ranked, terms []lexis.Term, cut bool, err error) {
	if isID(memoryPrefix, query) {
		err = s.read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			found, err := revisionsWhere(ctx, c, "WHERE m.id = ? AND r.revision = m.head AND "+visibleSQL("m", "r"), append([]any{query}, sight.args()...)...)
			for _, r := range found {
				list = append(list, ranked{r, Relevance{"exact_id", "strong", []string{query}}, 0})
			}
			return err
		})
		return list, nil, false, err
	}
	terms = s.terms(query)
	err = s.read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		found, weights, many, err := search(ctx, c, terms, sight)
		if err != nil {
			return err
		}
		cut = many
		for _, f := range found {
			all, err := revisionsWhere(ctx, c, "WHERE m.doc = ? AND r.revision = m.head", f.doc)
			if err != nil {
				return err
			}
			for _, r := range all {
				list = append(list, ranked{r, Relevance{"lexical", band(len(f.matched), len(terms)), visibleAll(f.matched)}, s.weigh(r.interpretation, terms, weights)})
			}
		}
		return nil
	})
	// What holds more of the query's words comes first, as in a recall of evidence.
	slices.SortStableFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(len(b.relevance.MatchedTerms), len(a.relevance.MatchedTerms)), cmp.Compare(b.score, a.score), cmp.Compare(a.memory, b.memory))
	})
	return list, terms, cut, err
}

// choose takes the first limit revisions that may be shown, judging only as many as
// that needs.
func (s *Store) choose(ctx context.Context, d *doctor, out *RecallOut, list []ranked, from, limit int, sight visible) ([]ranked, error) {
	var shown []ranked
	hidden, waiting := 0, 0
	at := min(from, len(list))
	for n := limit; at < len(list) && len(shown) < limit; n *= 2 { // where many are hidden, more at a time
		next := list[at:min(len(list), at+n)]
		if err := d.look(ctx, revisionsOf(next)); err != nil {
			return nil, err
		}
		for i := range next {
			if len(shown) == limit {
				break
			}
			r := &next[i]
			at++
			state := d.revision(r.revision)
			if quarantines(state) && !sight.invalid {
				hidden++
				if state == unavailable && d.pending(r.revision) {
					waiting++
				}
				continue
			}
			shown = append(shown, *r)
			out.Candidates = append(out.Candidates, r.recalled(d, state))
			out.places = append(out.places, at-1)
		}
	}
	if at < len(list) {
		c := makeCursor(at)
		out.NextCursor = &c
	}
	if len(shown) > 0 {
		out.Outcome = "matches"
	}
	if hidden > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d quarantined: their own evidence changed, is gone or was withdrawn; include_invalid shows them", hidden))
	}
	if waiting > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("of them, %d may only wait for histories that are still being read; ask again in a moment", waiting))
	}
	return shown, nil
}

func revisionsOf(list []ranked) []*revision {
	out := make([]*revision, len(list))
	for i := range list {
		out[i] = list[i].revision
	}
	return out
}

// warn adds what the reader of an answer has to know about its evidence.
func (o *RecallOut) warn(d *doctor) {
	if d.trouble != nil {
		w := "evidence could not be looked up: " + d.trouble.Error()
		if d.trouble.Hint != "" {
			w += "; " + d.trouble.Hint
		}
		o.Warnings = append(o.Warnings, w)
	}
	if slices.ContainsFunc(o.Candidates, func(c Recalled) bool { return c.ProvenanceState == lastGood }) {
		o.Warnings = append(o.Warnings, "evidence marked last_good is as it was indexed last: its source is gone, cannot be read, or is newer than the index")
	}
}

func (r *ranked) recalled(d *doctor, state string) Recalled {
	c := Recalled{Kind: "derived_memory", MemoryID: r.memory, Revision: r.number, Interpretation: r.interpretation, Scope: r.scope(), DerivedAt: timeOf(r.derived),
		DerivationKind: derivation, MoonciteVersion: r.program, Provenance: r.provenance(), Anchors: []Anchored{}, Relevance: r.relevance,
		ProvenanceState: state, Quarantined: quarantines(state), Lifecycle: r.life.answer(), Related: []Related{}}
	for i := range r.anchors {
		a := &r.anchors[i]
		c.Anchors = append(c.Anchors, Anchored{a.ID, evidence.Visible(a.URI), d.anchor(a)})
	}
	if len(r.anchors) > 0 && d.projection != nil {
		c.EvidenceProjection = &Projection{d.projection.Freshness, d.projection.Trust, d.projection.Coverage}
	}
	return c
}

func visibleAll(terms []string) []string {
	out := make([]string, len(terms))
	for i, t := range terms {
		out[i] = evidence.Visible(t)
	}
	return out
}

const cursorPrefix = "memory:"

// A cursor holds how many of the ranked memories were looked at.
func makeCursor(at int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + strconv.Itoa(at)))
}

func parseCursor(s string) (at int, ok bool) {
	if s == "" {
		return 0, true
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return 0, false
	}
	rest, ok := strings.CutPrefix(string(b), cursorPrefix)
	if !ok {
		return 0, false
	}
	at, err = strconv.Atoi(rest)
	return at, err == nil && at > 0 && at <= maxRanked && makeCursor(at) == s
}
