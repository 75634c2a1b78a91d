package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/source"
)

// Outcomes of status.
const (
	Ready    = "ready"
	Degraded = "degraded"
)

// IndexWrite is the one reason of this package's own, beside those of package source: what
// was read could not be put into the index.
const IndexWrite fault.Code = "index_write_failure"

const unknownOrigin = "unknown"

// Bounds of what status names.
const (
	maxNamed   = 20
	maxUnknown = 20
)

// ErrorGroup counts faults by origin and reason. Faults of whole files are fatal;
// faults of single records are not.
type ErrorGroup struct {
	Origin     string     `json:"origin"`
	Reason     fault.Code `json:"reason"`
	Count      int64      `json:"count"`
	FatalCount int64      `json:"fatalCount" doc:"Of them, files or roots that cannot be read as they stand."`

	note string // plain words for recall, "" for the reason's own
}

func (g *ErrorGroup) sentence() string {
	if g.note != "" {
		return g.note
	}
	return fmt.Sprintf("%s: %s (%d)", g.Origin, strings.ReplaceAll(string(g.Reason), "_", " "), g.Count)
}

// Problem names one file or root that cannot be read as it stands.
type Problem struct {
	Origin string     `json:"origin"`
	Name   string     `json:"name" doc:"Base name of the file or root."`
	ID     string     `json:"id" doc:"8 hex digits that tell files of one name apart."`
	Reason fault.Code `json:"reason"`
	Detail string     `json:"detail"`
	Remedy string     `json:"remedy"`
}

// Confinement says what the kernel keeps this process from.
type Confinement struct {
	Level       string `json:"level" enum:"full|partial-landlock|no-landlock" doc:"How much access to files the kernel restricts."`
	LandlockABI int    `json:"landlockAbi" doc:"0 where there is no Landlock."`
	Seccomp     bool   `json:"seccomp" doc:"System calls are filtered: no socket, no other program."`
}

// ByOrigin is a count for each origin.
type ByOrigin struct {
	Pi      int64 `json:"pi"`
	OMP     int64 `json:"omp"`
	Claude  int64 `json:"claude-code"`
	Codex   int64 `json:"codex"`
	ChatGPT int64 `json:"chatgpt"`
}

func (b *ByOrigin) of(o evidence.Origin) *int64 {
	switch o {
	case evidence.Pi:
		return &b.Pi
	case evidence.OMP:
		return &b.OMP
	case evidence.Claude:
		return &b.Claude
	case evidence.Codex:
		return &b.Codex
	}
	return &b.ChatGPT
}

// UnknownType counts records of a type nobody knows.
type UnknownType struct {
	Origin string `json:"origin"`
	Type   string `json:"type"`
	Count  int64  `json:"count"`
}

// Progress says how far a running read of histories is.
type Progress struct {
	FilesDone  int   `json:"filesDone"`
	Files      int   `json:"files"`
	BytesDone  int64 `json:"bytesDone"`
	Bytes      int64 `json:"bytes"`
	Rebuilding bool  `json:"rebuilding"`
}

// StatusIn is what mooncite_status takes: nothing.
type StatusIn struct{}

// StatusOut is what mooncite_status answers.
type StatusOut struct {
	Outcome                 string        `json:"outcome" enum:"ready|degraded|unavailable"`
	Meaning                 string        `json:"meaning"`
	Next                    *Next         `json:"next"`
	Freshness               string        `json:"freshness" enum:"current|last_good|unavailable"`
	SearchUsable            bool          `json:"searchUsable"`
	Searched                Searched      `json:"searched"`
	Indexing                *Progress     `json:"indexing" doc:"What is being read just now."`
	ErrorGroups             []ErrorGroup  `json:"errorGroups"`
	Problems                []Problem     `json:"problems" doc:"Files and roots behind the fatal counts, at most 20."`
	MoreProblems            int           `json:"moreProblems"`
	Generation              string        `json:"generation"`
	TrustState              string        `json:"trustState" enum:"full_verified|append_trusted"`
	Coverage                string        `json:"coverage" enum:"complete|partial"`
	SourceRoot              string        `json:"sourceRoot"`
	SourceFiles             int64         `json:"sourceFiles"`
	SourceFilesByOrigin     ByOrigin      `json:"sourceFilesByOrigin"`
	VanishedFiles           int64         `json:"vanishedFiles" doc:"Indexed files that are gone; their text stays searchable."`
	Records                 int64         `json:"records"`
	EligibleRecords         int64         `json:"eligibleRecords"`
	EvidenceSpans           int64         `json:"evidenceSpans"`
	Skipped                 int64         `json:"skipped"`
	Malformed               int64         `json:"malformed"`
	Oversized               int64         `json:"oversized"`
	Errors                  int64         `json:"errors"`
	UnknownTypes            []UnknownType `json:"unknownTypes"`
	Links                   int64         `json:"links" doc:"Symbolic links below roots, which are never followed."`
	StateBytes              int64         `json:"stateBytes"`
	LastSuccessfulRefreshAt *string       `json:"lastSuccessfulRefreshAt"`
	LastRefreshOutcome      string        `json:"lastRefreshOutcome" enum:"not_run|published|unchanged|retained_last_good|unavailable"`
	LastRebuildOutcome      string        `json:"lastRebuildOutcome" enum:"not_run|published|retained_last_good|unavailable"`
	Forgotten               int           `json:"forgotten" doc:"Sessions and spans taken out with mooncite forget."`
	Registrations           Registrations `json:"registrations"`
	Confinement             Confinement   `json:"confinement"`
	ResultDetail            *Detail       `json:"resultDetail,omitempty"`

	LearnedMemory *LearnedMemory `json:"learnedMemory,omitempty" doc:"Only when the owner switched learned memory on."`
}

// statusBudget is how long a status waits for newer text to be read.
const statusBudget = 2 * time.Second

// Status looks for changes and says what is indexed and what is wrong.
func (e *Engine) Status(ctx context.Context) (StatusOut, error) {
	out := StatusOut{SourceRoot: "authorized-conversation-sources", Generation: emptyGeneration, TrustState: fullVerified, Coverage: partial,
		ErrorGroups: []ErrorGroup{}, Problems: []Problem{}, UnknownTypes: []UnknownType{},
		Registrations: registrations(e.dir), Confinement: e.confined}
	f, err := e.fresh(ctx, statusBudget, false)
	if err == nil {
		err = e.read(ctx, f, func(v *view) error { out.fill(v); return nil })
	}
	rebuilt := out.LastRebuildOutcome
	out.LastRefreshOutcome, out.LastRebuildOutcome, out.LastSuccessfulRefreshAt = e.outcomes()
	if out.LastRebuildOutcome == notRun && rebuilt != "" {
		out.LastRebuildOutcome = rebuilt // by another process
	}
	out.StateBytes, out.Forgotten = e.store.Size(), e.forgotten.Len()
	if e.learned != nil {
		out.LearnedMemory = e.learned(ctx)
	}
	if err != nil {
		out.Outcome, out.Freshness = Unavailable, Unavailable
		out.Meaning = "The index cannot be used: " + plain(err)
		if errors.Is(err, sqlitedb.Damaged) { // what else can be wrong a rebuild does not mend
			out.Next = run("mooncite rebuild", "make the index anew from the histories, which it does not touch")
		}
		return out, nil
	}
	out.conclude(f)
	return out, nil
}

func (o *StatusOut) fill(v *view) {
	if v.snap != nil && v.snap.Rebuilt() {
		o.LastRebuildOutcome = published
	}
	o.Generation, o.TrustState, o.Coverage = v.generation(), v.trust(), v.coverage()
	any := index.Any()
	o.Searched = v.searched(&any)
	type key struct {
		origin string
		reason fault.Code
	}
	groups := map[key]*ErrorGroup{}
	group := func(origin string, reason fault.Code) *ErrorGroup {
		k := key{origin, reason}
		if groups[k] == nil {
			groups[k] = &ErrorGroup{Origin: origin, Reason: reason}
		}
		return groups[k]
	}
	unknown := map[[2]string]int64{}
	for _, s := range v.sources {
		o.SourceFiles++
		*o.SourceFilesByOrigin.of(s.Origin)++
		if !s.Present {
			o.VanishedFiles++
		}
		c := &s.Counts
		o.Records += c.Records
		o.EligibleRecords += c.Eligible
		o.EvidenceSpans += s.Spans
		o.Skipped += c.Skipped
		o.Malformed += c.Malformed
		o.Oversized += c.Oversized
		o.Errors += c.Errors
		if c.Errors > 0 {
			group(string(s.Origin), source.ReadOrParse).Count += c.Errors
		}
		for name, n := range c.Unknown {
			unknown[[2]string{string(s.Origin), name}] += n
		}
		if s.Fault != "" {
			g := group(string(s.Origin), faultReason(s.Fault))
			g.Count++
			g.FatalCount++
			o.Errors++
			o.Problems = append(o.Problems, problemOf(s))
		}
	}
	for _, g := range v.fresh.groups {
		to := group(g.Origin, g.Reason)
		to.Count += g.Count
		to.FatalCount += g.FatalCount
		o.Errors += g.Count
	}
	o.Problems = append(o.Problems, v.fresh.problems...)
	o.Links = v.fresh.links
	o.Indexing = v.fresh.progress()
	for _, g := range groups {
		o.ErrorGroups = append(o.ErrorGroups, *g)
	}
	slices.SortFunc(o.ErrorGroups, func(a, b ErrorGroup) int {
		return cmp.Or(strings.Compare(a.Origin, b.Origin), cmp.Compare(a.Reason, b.Reason))
	})
	slices.SortFunc(o.Problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Origin, b.Origin), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	if n := len(o.Problems); n > maxNamed {
		o.Problems, o.MoreProblems = o.Problems[:maxNamed], n-maxNamed
	}
	for k, n := range unknown {
		o.UnknownTypes = append(o.UnknownTypes, UnknownType{k[0], evidence.Visible(k[1]), n})
	}
	slices.SortFunc(o.UnknownTypes, func(a, b UnknownType) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Origin, b.Origin), strings.Compare(a.Type, b.Type))
	})
	o.UnknownTypes = o.UnknownTypes[:min(len(o.UnknownTypes), maxUnknown)]
}

// A source's fault is stored as "reason: what is wrong".
func faultReason(stored string) fault.Code {
	reason, _, _ := strings.Cut(stored, ": ")
	return fault.Code(reason)
}

func problemOf(s *index.Source) Problem {
	_, detail, _ := strings.Cut(s.Fault, ": ")
	reason := faultReason(s.Fault)
	p := Problem{Origin: string(s.Origin), Name: evidence.Visible(path.Base(s.Rel)), ID: evidence.ShortName(s.StoredPath()), Reason: reason, Detail: evidence.Visible(detail)}
	switch {
	case reason == source.Changed:
		p.Remedy = "run `mooncite rebuild` to take the file as it is now; until then its earlier text stays searchable"
	case s.Spans > 0:
		p.Remedy = "its earlier text stays searchable; the file is read again when it changes"
	default:
		p.Remedy = "nothing else is affected; the file is read again when it changes"
	}
	return p
}

func (o *StatusOut) conclude(f *freshness) {
	o.SearchUsable = o.EvidenceSpans > 0 || o.SourceFiles > 0
	fatal := slices.ContainsFunc(o.ErrorGroups, func(g ErrorGroup) bool { return g.FatalCount > 0 })
	switch {
	case !o.SearchUsable && f.busy():
		o.Outcome, o.Freshness = Degraded, Unavailable
		o.Meaning = "The histories are being read for the first time."
	case !o.SearchUsable:
		o.Outcome, o.Freshness = Unavailable, Unavailable
		o.Meaning = "No readable session files were found in the authorized roots."
		o.Next = run("mooncite source list", "see which roots are looked at; add one with `mooncite source add`")
	case f.busy():
		o.Outcome, o.Freshness = Degraded, "last_good"
		o.Meaning = "Search works; newer text is still being read."
	case fatal || f.pending() > 0:
		o.Outcome, o.Freshness = Degraded, "last_good"
		o.Meaning = "Search works; some sources cannot be read as they stand and are named under problems."
		o.Next = o.remedy()
	case o.Oversized > 0:
		o.Outcome, o.Freshness = Degraded, "current"
		o.Meaning = "Search works; some records are too long or too damaged to be read as a whole."
	case o.Errors > 0:
		o.Outcome, o.Freshness = Ready, "current"
		o.Meaning = "Search works and is current. Some damaged records are not citable; they are still looked at when something is not found."
	default:
		o.Outcome, o.Freshness = Ready, "current"
		o.Meaning = "Search works and is current."
	}
}

// remedy advises a rebuild only where it helps and takes no vanished text away.
func (o *StatusOut) remedy() *Next {
	rewritten := slices.ContainsFunc(o.Problems, func(p Problem) bool { return p.Reason == source.Changed })
	if rewritten && o.VanishedFiles == 0 {
		return run("mooncite rebuild", "take rewritten files as they are now")
	}
	if slices.ContainsFunc(o.Problems, func(p Problem) bool { return p.Reason == source.RootUnavailable || p.Reason == source.Configuration }) {
		return run("mooncite source list", "see what is wrong with the roots and how to mend it")
	}
	return nil
}

// Text is the answer in words, with the same facts as its structure.
func (o StatusOut) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Mooncite status: %s; %s\n", o.Outcome, o.Meaning)
	fmt.Fprintf(&b, "Freshness: %s; search usable: %t; coverage %s; trust %s; generation %s\n", o.Freshness, o.SearchUsable, o.Coverage, o.TrustState, o.Generation)
	fmt.Fprintf(&b, "Searched: %d sources, up to %s, %d pending\n", o.Searched.Sources, orUnknown(o.Searched.UpTo), o.Searched.Pending)
	if p := o.Indexing; p != nil {
		fmt.Fprintf(&b, "Reading: %d of %d files, %d of %d bytes; rebuilding: %t\n", p.FilesDone, p.Files, p.BytesDone, p.Bytes, p.Rebuilding)
	}
	c := &o.SourceFilesByOrigin
	fmt.Fprintf(&b, "Sources (%s): %d files (pi %d, omp %d, claude-code %d, codex %d, chatgpt %d), %d of them gone; %d links not followed\n", o.SourceRoot, o.SourceFiles, c.Pi, c.OMP, c.Claude, c.Codex, c.ChatGPT, o.VanishedFiles, o.Links)
	fmt.Fprintf(&b, "Records: %d, eligible %d, spans %d; skipped %d, malformed %d, oversized %d, errors %d, forgotten %d\n", o.Records, o.EligibleRecords, o.EvidenceSpans, o.Skipped, o.Malformed, o.Oversized, o.Errors, o.Forgotten)
	for _, g := range o.ErrorGroups {
		fmt.Fprintf(&b, "Errors: %s, %s: %d, of them fatal %d\n", g.Origin, g.Reason, g.Count, g.FatalCount)
	}
	for _, p := range o.Problems {
		line(&b, "Problem", fmt.Sprintf("%s %s (%s): %s: %s; %s", p.Origin, p.Name, p.ID, p.Reason, p.Detail, p.Remedy))
	}
	if o.MoreProblems > 0 {
		fmt.Fprintf(&b, "%d further problems are not named.\n", o.MoreProblems)
	}
	for _, u := range o.UnknownTypes {
		line(&b, "Unknown records", fmt.Sprintf("%s, type %s: %d", u.Origin, u.Type, u.Count))
	}
	fmt.Fprintf(&b, "Index: %d bytes; last successful refresh %s; last refresh %s, last rebuild %s\n", o.StateBytes, orUnknown(o.LastSuccessfulRefreshAt), o.LastRefreshOutcome, o.LastRebuildOutcome)
	r := &o.Registrations
	fmt.Fprintf(&b, "Registrations: pi %s, omp %s, codex %s, claudeCode %s; asked %s\n", r.Pi, r.OMP, r.Codex, r.ClaudeCode, orNever(r.ProbedAt))
	if o.LearnedMemory != nil {
		b.WriteString(o.LearnedMemory.text())
	}
	f := &o.Confinement
	fmt.Fprintf(&b, "Confinement: %s; Landlock ABI %d; system calls filtered: %t\n", f.Level, f.LandlockABI, f.Seccomp)
	b.WriteString(detailText(o.ResultDetail))
	b.WriteString(o.Next.text())
	return b.String()
}

// Fit leaves out named problems and unknown types from the end; error groups are
// never cut.
func (o StatusOut) Fit(max int, detail *op.Detail) any {
	o.ResultDetail = detail
	for !op.Fits(o, max) && len(o.Problems)+len(o.UnknownTypes) > 0 {
		if n := len(o.UnknownTypes); n > 0 {
			o.UnknownTypes = o.UnknownTypes[:n-1]
			continue
		}
		o.Problems = o.Problems[:len(o.Problems)-1]
		o.MoreProblems++
	}
	return o
}
