package memory_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/lexis"
	"localmcp/mooncite/internal/memory"
	"localmcp/mooncite/internal/source"
)

// workerVariable makes the test binary a process that runs tools.
const workerVariable = "MEMORY_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type request struct {
	Tool string
	Args json.RawMessage
}

type response struct {
	Code string
	Out  json.RawMessage
}

// work is a process of its own: it runs the tools that its input asks for.
func work() error {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	places, err := source.PlacesOf(env)
	if err != nil {
		return err
	}
	ctx := context.Background()
	e, err := engine.Open(ctx, places, engine.Options{Patience: 10 * time.Second})
	if err != nil {
		return err
	}
	defer e.Close()
	s := memory.New(places.StateDir, "1.2.3", e, nil)
	defer s.Close()
	set := op.NewSet(s.Ops(on)...)
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var q request
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var r response
		if answer, err := set.Run(ctx, op.Call{Op: q.Tool, Args: q.Args}); err != nil {
			r.Code = string(fault.From(err).Code)
		} else if r.Out, err = op.Encode(answer); err != nil {
			return err
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

// A worker is the other end of such a process.
type worker struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	errs strings.Builder
}

func (w *world) worker() *worker {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	k := &worker{t: w.t, cmd: exec.Command(self)}
	k.cmd.Env = append(w.Environ(), workerVariable+"=1")
	k.cmd.Stderr = &k.errs
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	k.out = bufio.NewScanner(out)
	k.out.Buffer(nil, 1<<20)
	if err := k.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = k.in.Close()
		_ = k.cmd.Wait()
	})
	return k
}

func (k *worker) send(s *step) {
	k.t.Helper()
	data, err := json.Marshal(request{s.tool, json.RawMessage(s.args)})
	if err == nil {
		_, err = k.in.Write(append(data, '\n'))
	}
	if err != nil {
		k.t.Fatalf("%v: %s", err, k.errs.String())
	}
}

func (k *worker) receive() (r response) {
	k.t.Helper()
	if !k.out.Scan() {
		k.t.Fatalf("the worker ended: %v, %s", k.out.Err(), k.errs.String())
	}
	if err := json.Unmarshal(k.out.Bytes(), &r); err != nil {
		k.t.Fatal(err)
	}
	return r
}

// A step is one call with what a model needs to know of it.
type step struct {
	tool, args string
	do         string // create, consolidate, revise, activate, archive, reinforce, propose, review, delete, drop
	id         string // memory or candidate
	revision   int64  // guard
	version    int64  // guard
	state      string // guard or decision
	salience   int64
	written
	scope *string  // what is asked for: a project, "" for global, nil for nothing
	rests []string // projects of the evidence
}

// written is what a step writes as a revision.
type written struct {
	text, project string
	evidence      int
	parents       []memory.Source
}

// row is a revision as dump finds it.
func (w written) row() string {
	var parents []string
	for _, p := range w.parents {
		parents = append(parents, fmt.Sprint(p.MemoryID, "@", p.Revision))
	}
	return fmt.Sprintf("%s %q %d %s", w.text, w.project, w.evidence, strings.Join(parents, ","))
}

// A model is what the memories should be after the steps that were answered.
type model struct {
	memories   map[string]*modelled
	candidates map[string]*proposed
}

type modelled struct {
	revisions  []written
	version    int64
	archived   bool
	salience   int64
	reinforced int64
}

type proposed struct {
	state   string
	sources []memory.Source
}

func (m *model) clone() *model {
	c := &model{maps.Clone(m.memories), maps.Clone(m.candidates)}
	for id, x := range c.memories {
		y := *x
		y.revisions = slices.Clone(x.revisions)
		c.memories[id] = &y
	}
	for id, x := range c.candidates {
		y := *x
		c.candidates[id] = &y
	}
	return c
}

func (m *model) has(s memory.Source) bool {
	x := m.memories[s.MemoryID]
	return x != nil && s.Revision >= 1 && s.Revision <= int64(len(x.revisions))
}

// blocked reports whether anything outside a memory rests on it.
func (m *model) blocked(id string) bool {
	rests := func(s memory.Source) bool { return s.MemoryID == id }
	for other, x := range m.memories {
		if other != id && slices.ContainsFunc(x.revisions, func(r written) bool { return slices.ContainsFunc(r.parents, rests) }) {
			return true
		}
	}
	for _, k := range m.candidates {
		if slices.ContainsFunc(k.sources, rests) {
			return true
		}
	}
	return false
}

// place gives a step the project it is to have, or reports that it can have none. kept is
// the one it has if it asks for nothing.
func (m *model) place(s *step, kept *string) (project string, ok bool) {
	rests := slices.Clone(s.rests)
	for _, p := range s.parents {
		rests = append(rests, m.memories[p.MemoryID].revisions[p.Revision-1].project)
	}
	asked := s.scope
	if asked == nil {
		asked = kept
	}
	if asked == nil { // the one project of everything
		if len(rests) == 0 || rests[0] == "" {
			return "", false
		}
		asked = &rests[0]
	}
	return *asked, *asked == "" || !slices.ContainsFunc(rests, func(p string) bool { return p != *asked })
}

// expect is what a step must give: a code, or an outcome. It settles the step's project.
func (m *model) expect(s *step) string {
	x := m.memories[s.id]
	lost := slices.ContainsFunc(s.parents, func(p memory.Source) bool { return !m.has(p) })
	placed := func(kept *string) string {
		var ok bool
		if s.project, ok = m.place(s, kept); !ok {
			return string(evidence.CodeRefused)
		}
		return s.do
	}
	switch s.do {
	case "create", "consolidate", "propose":
		switch {
		case lost:
			return string(evidence.CodeNotFound)
		case s.do == "propose":
			return s.do
		}
		return placed(nil)
	case "review", "drop":
		switch k := m.candidates[s.id]; {
		case k == nil:
			return string(evidence.CodeNotFound)
		case s.do == "review" && k.state != "pending_review", s.do == "drop" && k.state != s.state:
			return string(evidence.CodeConflict)
		}
		return s.do
	}
	switch {
	case x == nil:
		return string(evidence.CodeNotFound)
	case s.revision != int64(len(x.revisions)), s.do != "revise" && s.version != x.version:
		return string(evidence.CodeConflict)
	case x.archived && s.do != "activate" && s.do != "delete":
		return string(evidence.CodeRefused)
	case s.do == "revise" && lost:
		return string(evidence.CodeNotFound)
	case s.do == "revise":
		return placed(&x.revisions[len(x.revisions)-1].project)
	case s.do == "delete" && m.blocked(s.id):
		return "blocked"
	}
	return s.do
}

// apply does a step that was answered, or says why the answer cannot be.
func (m *model) apply(s *step, r response) error {
	want := m.expect(s)
	var out struct {
		Outcome, MemoryID string
		Revision          int64
		DeletedRevisions  int64
		Candidate         *struct{ CandidateID string }
		Lifecycle         *memory.Lifecycle
	}
	if r.Code != "" {
		if r.Code != want {
			return fmt.Errorf("%s gave %s, want %s", s.do, r.Code, want)
		}
		return nil
	}
	if err := json.Unmarshal(r.Out, &out); err != nil {
		return err
	}
	done := map[string]string{"create": "created", "consolidate": "consolidated", "revise": "revised", "activate": "activated", "archive": "archived", "reinforce": "reinforced", "propose": "proposed", "review": "reviewed", "delete": "deleted", "drop": "deleted", "blocked": "blocked"}[want]
	if out.Outcome != done {
		return fmt.Errorf("%s gave %s, want %s", s.do, out.Outcome, want)
	}
	x := m.memories[s.id]
	switch want {
	case "create", "consolidate":
		m.memories[out.MemoryID] = &modelled{revisions: []written{s.written}, version: 1}
	case "revise":
		x.revisions = append(x.revisions, s.written)
		if out.Revision != int64(len(x.revisions)) {
			return fmt.Errorf("revision %d, want %d", out.Revision, len(x.revisions))
		}
	case "activate", "archive", "reinforce":
		x.version++
		x.archived = want == "archive"
		if want == "reinforce" {
			x.salience, x.reinforced = s.salience, x.reinforced+1
		}
		if l := out.Lifecycle; l.MetadataVersion != x.version || l.Salience != x.salience || l.ReinforcementCount != x.reinforced || (l.State == "archived") != x.archived {
			return fmt.Errorf("%s gave %+v, want %+v", s.do, l, x)
		}
	case "propose":
		m.candidates[out.Candidate.CandidateID] = &proposed{"pending_review", s.parents}
	case "review":
		m.candidates[s.id].state = s.state
	case "delete":
		if out.DeletedRevisions != int64(len(x.revisions)) {
			return fmt.Errorf("%d revisions deleted, want %d", out.DeletedRevisions, len(x.revisions))
		}
		delete(m.memories, s.id)
	case "drop":
		delete(m.candidates, s.id)
	}
	return nil
}

// A chooser makes steps at random, most of them sensible, about few things, so that two
// processes often want the same.
type chooser struct {
	*rand.Rand
	m        *model
	n        int
	evidence []modelEvidence
}

// modelEvidence is what a revision may rest on.
type modelEvidence struct{ id, project string }

// chooser makes one for the histories of a world, which are of two projects.
func (w *world) chooser() *chooser {
	w.t.Helper()
	seed := uint64(time.Now().UnixNano())
	w.t.Logf("seed %d", seed)
	c := &chooser{Rand: rand.New(rand.NewPCG(seed, 0)), m: &model{map[string]*modelled{}, map[string]*proposed{}}}
	for _, said := range []string{"trimmed to four millimetres", "every Monday", "half past six"} {
		c.evidence = append(c.evidence, modelEvidence{w.evidence(said), w.project(said)})
	}
	if c.evidence[0].project == c.evidence[2].project {
		w.t.Fatalf("%v", c.evidence)
	}
	return c
}

func (c *chooser) memory() (string, *modelled) {
	ids := slices.Sorted(maps.Keys(c.m.memories))
	if len(ids) == 0 || c.IntN(20) == 0 {
		return aMemory, &modelled{revisions: make([]written, 1), version: 1}
	}
	id := ids[c.IntN(len(ids))]
	return id, c.m.memories[id]
}

func (c *chooser) sources(n int) (list []memory.Source) {
	for range n {
		id, x := c.memory()
		s := memory.Source{MemoryID: id, Revision: int64(1 + c.IntN(len(x.revisions)))}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// near is a guard: mostly the true one.
func (c *chooser) near(n int64) int64 {
	if c.IntN(6) == 0 {
		return max(1, n+int64(c.IntN(3)-1))
	}
	return n
}

// provenance of one of the kinds, or of any; it notes in the step what it rests on.
func (c *chooser) provenance(s *step, kinds ...string) string {
	relations := []string{"supports", "contradicts", "refines", "supersedes"}
	kind := kinds[c.IntN(len(kinds))]
	var more string
	switch kind {
	case "derived":
		s.parents = c.sources(1 + c.IntN(4))
		if s.do == "consolidate" && len(s.parents) < 2 {
			s.do = "create"
		}
		var list []string
		for _, p := range s.parents {
			list = append(list, fmt.Sprintf(`{"memory_id":%q,"revision":%d,"relation":%q,"reason":"a reason"}`, p.MemoryID, p.Revision, relations[c.IntN(4)]))
		}
		more = `,"parents":[` + strings.Join(list, ",") + `]`
	case "current_context":
		more = `,"context_note":"a note"`
	case "unanchored":
		return `{"kind":"unanchored","basis_note":"a note"}`
	}
	some := c.Perm(len(c.evidence))[:c.IntN(len(c.evidence)+1)]
	if kind == "verified" && len(some) == 0 {
		some = []int{c.IntN(len(c.evidence))}
	}
	var ids []string
	for _, i := range some {
		ids, s.rests = append(ids, strconv.Quote(c.evidence[i].id)), append(s.rests, c.evidence[i].project)
	}
	if s.written.evidence = len(ids); len(ids) > 0 {
		more += `,"evidence_ids":[` + strings.Join(ids, ",") + `]`
	}
	return fmt.Sprintf(`{"kind":%q%s}`, kind, more)
}

// asks gives a step a scope, mostly the one that everything may have.
func (c *chooser) asks(s *step) string {
	switch n := c.IntN(8); {
	case n < 2:
		return ""
	case n < 4:
		project := c.evidence[2*c.IntN(2)].project
		s.scope = &project
		return fmt.Sprintf(`,"scope":{"kind":"project","project":%q}`, project)
	}
	s.scope = new(string)
	return `,"scope":{"kind":"global"}`
}

func (c *chooser) step() *step {
	c.n++
	s := &step{tool: memory.ToolWrite, written: written{text: fmt.Sprintf("Text%d of the sandpiper%d walks.", c.n, c.IntN(5))}, do: []string{"create", "create", "consolidate", "revise", "revise", "revise", "activate", "archive", "reinforce", "propose", "review", "delete", "delete", "drop"}[c.IntN(14)]}
	switch s.do {
	case "create", "consolidate":
		kinds := []string{"verified", "derived", "current_context", "unanchored"}
		if s.do == "consolidate" {
			kinds = []string{"derived"}
		}
		provenance := c.provenance(s, kinds...) // which may make another step of it
		s.args = fmt.Sprintf(`{"operation":%q,"interpretation":%q,"provenance":%s%s}`, s.do, s.text, provenance, c.asks(s))
	case "revise":
		id, x := c.memory()
		s.id, s.revision = id, c.near(int64(len(x.revisions)))
		provenance := c.provenance(s, "verified", "derived", "current_context", "unanchored")
		s.args = fmt.Sprintf(`{"operation":"revise","memory_id":%q,"expected_revision":%d,"interpretation":%q,"provenance":%s%s}`, id, s.revision, s.text, provenance, c.asks(s))
	case "activate", "archive", "reinforce", "delete":
		id, x := c.memory()
		s.id, s.revision, s.version = id, c.near(int64(len(x.revisions))), c.near(x.version)
		guards := fmt.Sprintf(`"memory_id":%q,"expected_revision":%d,"expected_metadata_version":%d`, id, s.revision, s.version)
		switch s.do {
		case "delete":
			s.tool, s.args = memory.ToolDelete, `{"kind":"memory",`+guards+`}`
		case "reinforce":
			s.salience = int64(c.IntN(101))
			s.args = fmt.Sprintf(`{"operation":"reinforce",%s,"salience":%d}`, guards, s.salience)
		default:
			s.args = fmt.Sprintf(`{"operation":%q,%s}`, s.do, guards)
		}
	case "propose":
		s.parents = c.sources(1 + c.IntN(3))
		data, _ := json.Marshal(s.parents)
		s.args = `{"operation":"propose_skill_candidate","sources":` + strings.ReplaceAll(string(data), "memoryId", "memory_id") + `,"artifact":{"name":"a","description":"b","instructions":"c"}}`
	case "review", "drop":
		s.id, s.state = aCandidate, "pending_review"
		if ids := slices.Sorted(maps.Keys(c.m.candidates)); len(ids) > 0 {
			s.id = ids[c.IntN(len(ids))]
			s.state = c.m.candidates[s.id].state
		}
		if s.do == "drop" {
			s.tool, s.args = memory.ToolDelete, fmt.Sprintf(`{"kind":"skill_candidate","candidate_id":%q,"expected_state":%q}`, s.id, s.state)
			break
		}
		s.state = []string{"approved", "rejected"}[c.IntN(2)]
		s.args = fmt.Sprintf(`{"operation":"review_skill_candidate","candidate_id":%q,"expected_state":"pending_review","decision":%q,"note":"a note"}`, s.id, s.state)
	}
	return s
}

// dump is what the database holds, as a model says it.
func (w *world) dump() (texts map[string][]string, states map[string]string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", w.database())
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // for the temporary table
	texts, states = map[string][]string{}, map[string]string{}
	rows := func(query string, f func(scan func(...any) error) error) {
		w.t.Helper()
		r, err := db.Query(query)
		if err != nil {
			w.t.Fatal(err)
		}
		defer r.Close()
		for r.Next() {
			if err := f(r.Scan); err != nil {
				w.t.Fatal(err)
			}
		}
		if err := r.Err(); err != nil {
			w.t.Fatal(err)
		}
	}
	rows(`SELECT memory, interpretation, coalesce(project, ''), (SELECT count(*) FROM anchors AS a WHERE a.memory = r.memory AND a.revision = r.revision),
		coalesce((SELECT group_concat(parent || '@' || parent_revision, ',' ORDER BY position) FROM relations AS p WHERE p.memory = r.memory AND p.revision = r.revision), '')
		FROM revisions AS r ORDER BY memory, revision`, func(scan func(...any) error) error {
		var id, parents string
		var r written
		err := scan(&id, &r.text, &r.project, &r.evidence, &parents)
		texts[id] = append(texts[id], r.row()+parents)
		return err
	})
	rows("SELECT id, version || ' ' || (archived IS NOT NULL) || ' ' || salience || ' ' || reinforced FROM memories UNION ALL SELECT id, state FROM candidates", func(scan func(...any) error) error {
		var id, state string
		err := scan(&id, &state)
		states[id] = state
		return err
	})
	// The words are exactly those of the current revisions, each in its place.
	want, got := map[string]bool{}, map[string]bool{}
	var lex lexis.Tokenizer
	rows("SELECT m.doc, r.interpretation FROM memories AS m JOIN revisions AS r ON r.memory = m.id AND r.revision = m.head", func(scan func(...any) error) error {
		var doc int64
		var text string
		err := scan(&doc, &text)
		tokens, _ := lex.Document(nil, text)
		for i, word := range strings.Fields(string(tokens)) {
			want[fmt.Sprint(doc, " ", i, " ", word)] = true
		}
		return err
	})
	if _, err := db.Exec("CREATE VIRTUAL TABLE temp.v USING fts5vocab (main, words, instance)"); err != nil {
		w.t.Fatal(err)
	}
	rows(`SELECT doc, "offset", term FROM temp.v`, func(scan func(...any) error) error {
		var doc, at int64
		var word string
		err := scan(&doc, &at, &word)
		got[fmt.Sprint(doc, " ", at, " ", word)] = true
		return err
	})
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("words (-interpretations +index)\n%s", diff)
	}
	return texts, states
}

func (m *model) dump() (texts map[string][]string, states map[string]string) {
	texts, states = map[string][]string{}, map[string]string{}
	for id, x := range m.memories {
		archived := 0
		if x.archived {
			archived = 1
		}
		for _, r := range x.revisions {
			texts[id] = append(texts[id], r.row())
		}
		states[id] = fmt.Sprint(x.version, " ", archived, " ", x.salience, " ", x.reinforced)
	}
	for id, k := range m.candidates {
		states[id] = k.state
	}
	return texts, states
}

// Two processes do what they like at the same time. What they are told must be what
// would have happened one after the other, in one order or the other; nothing else is
// in the database; and after each pair all invariants hold.
func TestTwoProcesses(t *testing.T) {
	rounds := 250
	if testing.Short() {
		rounds = 40
	}
	w := newWorld(t)
	c := w.chooser()
	workers := []*worker{w.worker(), w.worker()}
	seen := map[string]int{}
	for round := range rounds {
		steps := []*step{c.step(), c.step()}
		if c.IntN(3) == 0 { // the very same
			again := *steps[0]
			steps[1] = &again
		}
		for i, k := range workers {
			k.send(steps[i])
		}
		answers := []response{workers[0].receive(), workers[1].receive()}
		var errs []error
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			m := c.m.clone()
			err := m.apply(steps[order[0]], answers[order[0]])
			if err == nil {
				err = m.apply(steps[order[1]], answers[order[1]])
			}
			if errs = append(errs, err); err == nil {
				c.m, errs = m, nil
				break
			}
		}
		if errs != nil {
			t.Fatalf("round %d: no order explains\n%s\n%s %s\n%s\n%s %s\n%v", round, steps[0].args, answers[0].Code, answers[0].Out, steps[1].args, answers[1].Code, answers[1].Out, errs)
		}
		for i := range answers {
			seen[steps[i].do+" "+answers[i].Code]++
		}
		w.store.Check(t)
		texts, states := w.dump()
		wantTexts, wantStates := c.m.dump()
		if diff := cmp.Diff(wantTexts, texts) + cmp.Diff(wantStates, states); diff != "" {
			t.Fatalf("round %d (-model +database)\n%s", round, diff)
		}
	}
	t.Logf("%v", seen)
	for _, code := range []string{"create ", "create refused", "consolidate ", "consolidate refused", "revise ", "revise conflict", "revise refused", "archive ", "delete ", "delete not_found", "drop ", "propose "} {
		if !testing.Short() && seen[code] == 0 {
			t.Errorf("%q never happened", code)
		}
	}
}

// A process may be killed at any moment of a write: what was answered is there, what
// was not is there as a whole or not at all, and all invariants hold.
func TestKilledWriter(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	w := newWorld(t)
	c := w.chooser()
	for round := range rounds {
		k := w.worker()
		deadline := time.Now().Add(time.Duration(c.IntN(60)) * time.Millisecond)
		for {
			s := c.step()
			k.send(s)
			if time.Now().Before(deadline) {
				if err := c.m.apply(s, k.receive()); err != nil {
					t.Fatal(err)
				}
				continue
			}
			time.Sleep(time.Duration(c.IntN(4000)) * time.Microsecond)
			if err := k.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = k.cmd.Wait()
			w.store.Check(t)
			texts, states := w.dump()
			if !c.m.settle(s, texts, states) {
				wantTexts, wantStates := c.m.dump()
				t.Fatalf("round %d, killed in %s (-model +database)\n%s", round, s.args, cmp.Diff(wantTexts, texts)+cmp.Diff(wantStates, states))
			}
			break
		}
	}
	w.restart()
	w.store.Check(t)
	w.unanchored("Life goes on.")
}

// settle finds out whether a step without an answer was done, and does it if so.
func (m *model) settle(s *step, texts map[string][]string, states map[string]string) bool {
	same := func(m *model) bool {
		a, b := m.dump()
		return cmp.Equal(a, texts) && cmp.Equal(b, states)
	}
	if same(m) {
		return true
	}
	done := m.clone()
	switch want := m.expect(s); want {
	case "create", "consolidate", "propose": // the id was not told
		for id := range states {
			if m.memories[id] == nil && m.candidates[id] == nil {
				if want != "propose" {
					done.memories[id] = &modelled{revisions: []written{s.written}, version: 1}
				} else {
					done.candidates[id] = &proposed{"pending_review", s.parents}
				}
			}
		}
	case "revise":
		x := done.memories[s.id]
		x.revisions = append(x.revisions, s.written)
	case "activate", "archive", "reinforce":
		x := done.memories[s.id]
		x.version, x.archived = x.version+1, want == "archive"
		if want == "reinforce" {
			x.salience, x.reinforced = s.salience, x.reinforced+1
		}
	case "review":
		done.candidates[s.id].state = s.state
	case "delete":
		delete(done.memories, s.id)
	case "drop":
		delete(done.candidates, s.id)
	}
	if !same(done) {
		return false
	}
	*m = *done
	return true
}

// Eight processes open a database that does not exist yet, at once.
func TestFirstOpenings(t *testing.T) {
	w := newWorld(t)
	var workers []*worker
	for range 8 {
		workers = append(workers, w.worker())
	}
	for i, k := range workers {
		k.send(&step{tool: memory.ToolWrite, args: fmt.Sprintf(`{"operation":"create","interpretation":"Sandpiper %d.","scope":{"kind":"global"},"provenance":{"kind":"unanchored","basis_note":"x"}}`, i)})
	}
	for _, k := range workers {
		if r := k.receive(); r.Code != "" {
			t.Errorf("%s", r.Code)
		}
	}
	w.store.Check(t)
	if out := w.recall(`{"query":"sandpiper","limit":20}`); len(out.Candidates) != 8 {
		t.Errorf("%s", out.Text())
	}
}
