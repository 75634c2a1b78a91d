package corpus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"localmcp/mooncite/internal/evidence"
)

// Version grows whenever the same [Config] would give other bytes, so that stored
// corpora can be told apart.
const Version = 1

// Seed is the seed used where none is given.
const Seed = 20240817

// Names of the two files that describe a corpus, in its HOME.
const (
	StatsFile   = "corpus.json"
	QueriesFile = "queries.json"
)

// MinBytes is the smallest corpus: below it an origin's share has no room for its
// planted phrases.
const MinBytes = 800_000

// Config says what to write.
type Config struct {
	Home  string          // the HOME to fill; it must not hold a corpus yet
	Bytes int64           // wanted size of all session files together
	Seed  uint64          // 0 means [Seed]
	Only  evidence.Origin // write this origin alone; empty means all five
}

// Planted is a phrase of common words that stands in the corpus once.
type Planted struct {
	Text   string          `json:"text"` // as written, the first letter a capital, without the full stop
	Origin evidence.Origin `json:"origin"`
	Time   time.Time       `json:"time"` // of the turn that holds it
	Path   string          `json:"path"` // of the file that holds it, below the HOME
}

// OriginStats counts what was written for one origin.
type OriginStats struct {
	Bytes   int64 `json:"bytes"`
	Files   int   `json:"files"`
	Records int   `json:"records"` // lines; for ChatGPT, messages
}

// Stats tells what was written.
type Stats struct {
	Version int                             `json:"version"`
	Seed    uint64                          `json:"seed"`
	Bytes   int64                           `json:"bytes"`
	Files   int                             `json:"files"`
	Records int                             `json:"records"`
	Origins map[evidence.Origin]OriginStats `json:"origins"`
	Planted []Planted                       `json:"planted"`
}

// share is an origin's part of the bytes and of the planted phrases.
type share struct {
	origin  evidence.Origin
	part    float64
	phrases int
}

var shares = []share{
	{evidence.Claude, .45, 8},
	{evidence.Codex, .25, 6},
	{evidence.Pi, .15, 4},
	{evidence.OMP, .05, 2},
	{evidence.ChatGPT, .10, 4},
}

// first is the time of the earliest conversation; span is how long they go on.
var first = time.Date(2024, 1, 3, 8, 0, 0, 0, time.UTC)

const span = 800_000 * time.Minute

// generator holds what the writers of the origins share.
type generator struct {
	home  string
	words *vocabulary

	// Of the origin being written.
	r       *rand.Rand
	stats   OriginStats
	base    int64       // bytes of its closed files
	due     []duePhrase // phrases still to plant, by position
	out     *sink       // the file being written
	path    string      // its path
	now     time.Time   // the time of the turn being written
	rec     record      // the record being built
	inner   record      // JSON inside a string of it
	buf     [2][]byte   // text being composed
	planted []Planted   // of all origins
	needles []string    // unique tokens written so far, all origins
	quotes  []string    // beginnings of sentences that were written
	last    string      // the sentence filler wrote last
	origin  evidence.Origin
}

type duePhrase struct {
	at   int64 // bytes of the origin after which it is planted
	text string
}

// Write writes a corpus, its queries and its description.
func Write(ctx context.Context, cfg Config) (Stats, error) {
	if cfg.Seed == 0 {
		cfg.Seed = Seed
	}
	if cfg.Bytes < MinBytes {
		return Stats{}, fmt.Errorf("a corpus has at least %d bytes", MinBytes)
	}
	plan := shares
	if cfg.Only != "" {
		plan = []share{{cfg.Only, 1, 24}}
	}
	phrases := 0
	for _, s := range plan {
		phrases += s.phrases
	}
	g := &generator{home: cfg.Home, words: newVocabulary(stream(cfg.Seed, 0), phrases)}
	st := Stats{Version: Version, Seed: cfg.Seed, Origins: map[evidence.Origin]OriginStats{}}
	texts := g.words.planted
	target := 0.
	for i, s := range plan {
		// What one origin wrote too much, the next ones write less.
		target += s.part * float64(cfg.Bytes)
		budget := int64(target) - st.Bytes
		g.r, g.origin, g.stats, g.base, g.due = stream(cfg.Seed, uint64(i)+1), s.origin, OriginStats{}, 0, nil
		for k, text := range texts[:s.phrases] {
			g.due = append(g.due, duePhrase{int64(float64(budget) * (float64(k) + .4) / float64(s.phrases)), capital(text)})
		}
		texts = texts[s.phrases:]
		if err := g.write(ctx, budget); err != nil {
			return st, fmt.Errorf("%s: %w", s.origin, err)
		}
		if len(g.due) > 0 {
			return st, fmt.Errorf("%s: no room for %d planted phrases", s.origin, len(g.due))
		}
		st.Origins[s.origin] = g.stats
		st.Bytes += g.stats.Bytes
		st.Files += g.stats.Files
		st.Records += g.stats.Records
	}
	st.Planted = g.planted
	if err := writeJSON(filepath.Join(cfg.Home, QueriesFile), g.queries(stream(cfg.Seed, 99))); err != nil {
		return st, err
	}
	return st, writeJSON(filepath.Join(cfg.Home, StatsFile), st)
}

// Load reads the description and the queries of a corpus.
func Load(home string) (Stats, []Query, error) {
	var st Stats
	var q []Query
	err := errors.Join(readJSON(filepath.Join(home, StatsFile), &st), readJSON(filepath.Join(home, QueriesFile), &q))
	return st, q, err
}

func (g *generator) write(ctx context.Context, budget int64) error {
	sessions := map[evidence.Origin]func(start time.Time, size int64) error{
		evidence.Claude: g.claude, evidence.Codex: g.codex, evidence.Pi: g.pi, evidence.OMP: g.omp,
	}
	session := sessions[g.origin]
	if session == nil {
		return g.chatgpt(ctx, budget)
	}
	mu := 13.0
	if g.origin == evidence.Claude {
		mu = 13.2
	}
	// Start times step by the golden ratio: a few files already cover the range.
	phase := g.r.Float64()
	for i := 1; g.base < budget; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, at := math.Modf(phase + float64(i)*math.Phi)
		start := first.Add(time.Duration(at * float64(span))).Truncate(time.Millisecond)
		size := min(int64(logNormal(g.r, mu, .9)), 12_000_000, max(20_000, budget-g.base))
		if err := session(start, size); err != nil {
			return err
		}
	}
	return nil
}

// open starts a file of the current origin; path is below the HOME.
func (g *generator) open(path string) (err error) {
	g.path = path
	g.out, err = create(filepath.Join(g.home, filepath.FromSlash(path)))
	return err
}

// shut ends the file and counts it.
func (g *generator) shut() error {
	g.stats.Bytes += g.out.bytes
	g.stats.Files++
	g.stats.Records += g.out.records
	g.base += g.out.bytes
	return g.out.close()
}

// step moves the clock to the next turn.
func (g *generator) step() {
	g.now = g.now.Add(time.Duration(between(g.r, 3, 240))*time.Second + time.Duration(g.r.IntN(1000))*time.Millisecond)
}

// filler composes about n bytes of sentences. The bytes are valid until the next
// call of filler, prose or dump.
func (g *generator) filler(n int, sep string) []byte {
	b := g.buf[0][:0]
	for len(b) < n {
		if len(b) > 0 {
			b = append(b, sep...)
		}
		g.last = pick(g.r, g.words.sentences)
		b = append(b, g.last...)
	}
	g.buf[0] = b
	return b
}

// prose is filler for dialogue: it also carries needles and due phrases.
func (g *generator) prose(n int, sep string) []byte {
	b := g.filler(n, sep)
	switch p := g.r.Float64(); {
	case p < .01:
		x := fmt.Sprintf("needle-%08x", g.r.Uint32())
		g.needles = append(g.needles, x)
		b = append(b, " Ticket "+x+"."...)
	case p < .013:
		g.quotes = append(g.quotes, cut(g.last, 60))
	}
	for len(g.due) > 0 && g.base+g.out.bytes+int64(len(g.rec.b)) >= g.due[0].at {
		text := g.due[0].text
		g.due = g.due[1:]
		g.planted = append(g.planted, Planted{text, g.origin, g.now, g.path})
		b = append(append(append(b, sep...), text...), '.')
	}
	g.buf[0] = b
	return b
}

// dump composes about n bytes of tool output.
func (g *generator) dump(n int) []byte {
	b := g.buf[1][:0]
	for len(b) < n || len(b) == 0 {
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = append(b, pick(g.r, g.words.lines)...)
	}
	g.buf[1] = b
	return b
}

// command is a line of tool input.
func (g *generator) command(n int) string { return cut(pick(g.r, g.words.lines), n) }

func (g *generator) hex(digits int) string {
	b := make([]byte, 0, digits+16)
	for len(b) < digits {
		b = fmt.Appendf(b, "%016x", g.r.Uint64())
	}
	return string(b[:digits])
}

func (g *generator) uuid() string { return asUUID(g.r.Uint64(), g.r.Uint64()) }

// asUUID forms a version 4 UUID.
func asUUID(hi, lo uint64) string {
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(3<<62) | 2<<62
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xffff, lo>>48, lo&(1<<48-1))
}

func stream(seed, n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }

func writeJSON(path string, v any) error {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent(" "))
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
