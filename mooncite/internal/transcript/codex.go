package transcript

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"localmcp/mooncite/internal/evidence"
)

var codexFormat = format{
	origin:  evidence.Codex,
	shape:   codexShape,
	descend: func(string) bool { return true },
	open:    openCodex,
	decode:  decodeCodex,
}

// codexShape takes every rollout and leaves the client's own lists alone.
func codexShape(rel string) Shape {
	base := rel[strings.LastIndexByte(rel, '/')+1:]
	stem, packed := strings.CutSuffix(base, ".zst")
	switch {
	case stem == "history.jsonl" || stem == "session_index.jsonl":
		return None
	case strings.HasSuffix(stem, ".jsonl") && packed:
		return Packed
	case strings.HasSuffix(stem, ".jsonl"):
		return Lines
	case strings.HasPrefix(base, "rollout-") && strings.HasSuffix(base, ".json"):
		return Document
	}
	return None
}

func decodeCodex(_ File, r *Record) ([]Entry, error) {
	record, ok := r.object()
	if !ok {
		return nil, nil
	}
	var l codexLine
	l.read(record)
	if e := readCodex(&l, r); e.ID != "" {
		return []Entry{e.Entry}, nil
	}
	return nil, nil
}

// How long a message waits for its double.
const (
	codexWindow      = 64      // records
	codexWindowBytes = 4 << 20 // of the file
	codexProject     = 16      // records in which a bare rollout may name its directory
	codexCopyGap     = 2000    // milliseconds in which a copied prefix was written
	codexMaxTurns    = 4096    // user turns that can be undone
)

// A codexParser reads one rollout. Entries leave in file order: what stands behind
// an undecided message waits with it.
type codexParser struct {
	tally
	file  File
	shape Shape

	line      codexLine
	known     bool // a record of a known era was met
	lastLine  int64
	lineIDs   []uint64        // records of that line, for two on one line that are the same; a state is behind a whole line
	lineSet   map[uint64]bool // the same, when they are many
	torn      bool            // a damaged line was met
	seq       int64           // records so far
	name      string
	fileID    string // thread id in the file name, or ""
	session   string // "" until told or needed
	header    bool   // session was told by a header
	project   string // "" until told
	fallback  string // stands in for it
	cwdUntil  int64  // while seq is not past it, a working directory is looked for
	cwdGiven  bool   // an entry left without one
	cwdEarly  bool   // only because the file ended there; read in one go, it would have waited
	paginated bool
	subagent  bool
	parent    string
	title     string
	compacted int64

	copying  bool
	copyDone bool
	ownTime  int64 // of the session id, ms; 0 when it tells none
	metaTime int64 // of the header line

	recent  []*codexPending // may still meet a double
	queue   []*codexPending // not yet emitted, in file order
	emitted int64           // since the file's beginning
	base    int64           // of them before this parser
	off     Bits
	last    codexRef
	lastID  string // of last
	turns   []codexUserTurn
	relabel bool
}

// A codexRef names an entry.
type codexRef struct {
	line int64 // 0: none
	sum  [8]byte
}

func (r codexRef) id() string {
	if r.line == 0 {
		return ""
	}
	return lineID(r.line, r.sum)
}

type codexUserTurn struct {
	at     int64 // emission number of its first entry
	parent codexRef
}

type codexPending struct {
	rec     Record
	entry   Entry
	seq     int64
	end     int64
	rank    int
	keys    []uint64
	took    uint8 // ranks of doubles it already swallowed
	decided bool
	drop    bool
	gone    bool // emitted at the end of an earlier read
	user    bool
}

func openCodex(f File, state []byte) (Parser, error) {
	p := &codexParser{file: f, shape: codexShape(f.Rel)}
	base := f.Rel[strings.LastIndexByte(f.Rel, '/')+1:]
	base = strings.TrimSuffix(base, ".zst")
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".jsonl"), ".json")
	p.name = base
	p.fileID = uuidIn(base)
	p.cwdUntil = -1
	if state == nil {
		return p, nil
	}
	if p.shape == Document || !p.load(state) {
		return nil, ErrRestart
	}
	return p, nil
}

// uuidIn finds the thread id in a rollout's name; a segment id may follow it.
func uuidIn(s string) string {
	const n = 36
	for i := 0; i+n <= len(s); i++ {
		if isUUID(s[i:i+n]) && (i == 0 || s[i-1] == '-' || s[i-1] == '_') {
			return s[i : i+n]
		}
	}
	return ""
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// uuidTime is the time in a version 7 UUID (RFC 9562, 5.7) in milliseconds, or 0.
func uuidTime(s string) int64 {
	if !isUUID(s) || s[14] != '7' {
		return 0
	}
	t, err := strconv.ParseInt(s[:8]+s[9:13], 16, 64)
	if err != nil {
		return 0
	}
	return t
}

// Damaged counts what holds no record.
func (p *codexParser) Damaged(line, start, n int64, oversized bool) {
	p.onLine(line)
	p.torn = true
	p.damaged(oversized)
}

func (p *codexParser) onLine(line int64) {
	if line != p.lastLine {
		p.lastLine = line
		p.lineIDs, p.lineSet = p.lineIDs[:0], nil
	}
}

// Record takes the next record.
func (p *codexParser) Record(r *Record, emit func(*Record, *Entry) error) error {
	p.onLine(r.Line)
	record, ok := r.object()
	if !ok {
		p.torn = true
		p.malformed()
		return nil
	}
	p.n.Records++
	p.seq++
	p.line.read(record)
	e := readCodex(&p.line, r)
	if e.note == cxUnknown {
		p.unknown(e.name)
	}
	p.known = p.known || !e.foreign
	own := false
	switch e.note {
	case cxHeader:
		if p.base > 0 && !p.header {
			return ErrRestart // read in one go, it may have come in time for what was given out
		}
		own = p.meta(&e)
	case cxTurn:
		p.turn(p.line.payload[cxTurnID].str())
	case cxRollback:
		if p.holding() {
			p.cwdUntil = p.seq - 1 // what waits must have left before it is undone
		}
		n, err := strconv.ParseInt(string(p.line.payload[cxNumTurns]), 10, 32)
		p.settle()
		if rerr := p.release(emit); rerr != nil {
			return rerr
		}
		if err == nil && n > 0 {
			p.rollback(n)
		}
	case cxTurnEnd:
		p.settle()
	case cxCompacted:
		p.compacted = r.Line
	case cxTitle:
		if t := p.line.payload[cxThreadName].str(); t != "" && len(t) <= 1024 {
			p.title = t
		}
	}
	if !p.copyDone && p.ownTime == 0 && !own && p.header && p.metaTime != evidence.NoTime &&
		e.Time != evidence.NoTime && e.Time > p.metaTime+codexCopyGap {
		p.copyDone = true // without ages in the ids only the pause tells
	}
	p.expire(r.End)
	if err := p.directory(&e, r.End); err != nil {
		return err
	}
	if e.ID == "" {
		return p.release(emit)
	}
	p.n.Eligible++
	if p.seen(binary.BigEndian.Uint64(r.Digest[:])) {
		p.duplicate()
		return p.release(emit)
	}
	e.Copy = p.copying && !p.copyDone
	if p.paginated && e.rank == rankMiddle {
		e.rank = rankStrong
	}
	x := &codexPending{entry: e.Entry, seq: p.seq, end: r.End, rank: e.rank, keys: e.keys, user: e.user}
	x.decided = x.rank == 0 || x.rank == rankStrong || len(x.keys) == 0
	if x.rank > 0 && len(x.keys) > 0 {
		if err := p.pair(x); err != nil {
			return err
		}
	}
	if !x.drop {
		// What has left the queue frees this one to go without a copy of its bytes.
		if err := p.release(emit); err != nil {
			return err
		}
		if len(p.queue) == 0 && x.decided && !p.holding() {
			return p.out(r, x, emit)
		}
		x.rec = *r
		x.rec.Bytes = slices.Clone(r.Bytes)
		p.queue = append(p.queue, x)
		return nil
	}
	return p.release(emit)
}

// seen reports whether the line already held the same record, whose id would be
// the same, and remembers this one.
func (p *codexParser) seen(sum uint64) bool {
	if p.lineSet != nil && p.lineSet[sum] || p.lineSet == nil && slices.Contains(p.lineIDs, sum) {
		return true
	}
	p.lineIDs = append(p.lineIDs, sum)
	if p.lineSet == nil && len(p.lineIDs) > 64 {
		p.lineSet = make(map[uint64]bool)
		for _, v := range p.lineIDs {
			p.lineSet[v] = true
		}
	} else if p.lineSet != nil {
		p.lineSet[sum] = true
	}
	return false
}

// meta takes a header. The first one is the file's own; a later one with another
// id belongs to the thread this one was copied from. It reports whether it was the
// file's own.
func (p *codexParser) meta(e *codexEntry) bool {
	f := &p.line.payload
	if !p.line.hasPayload {
		f = &p.line.top
	}
	id := f[cxID].str()
	if !evidence.IsIdentifier(id) {
		if id = f[cxSessionID].str(); !evidence.IsIdentifier(id) {
			return false
		}
	}
	// A file that lost its own header may begin with the parent's: then the name knows better.
	if p.header || p.session != "" && id != p.session || p.session == "" && p.torn && p.fileID != "" && id != p.fileID {
		if id != p.id() && !p.copyDone {
			p.copying = true
			if p.ownTime == 0 {
				p.ownTime = uuidTime(p.id())
			}
		}
		return id == p.id()
	}
	p.header = true
	p.session = id
	p.ownTime = uuidTime(id)
	p.metaTime = e.Time
	p.paginated = f[cxHistoryMode].str() == "paginated"
	if cwd := f[cxCwd]; cwd.isString() {
		v := cwd.str()
		p.project = ProjectID(v, v)
	} else {
		p.cwdUntil = p.seq + codexProject
	}
	forked, parent := f[cxForkedFrom].str(), f[cxParentThread].str()
	if s := f[cxSource]; s.isObject() {
		sub, spawner := codexSource(s)
		p.subagent = sub
		if parent == "" {
			parent = spawner
		}
	}
	if parent != "" && parent != id {
		p.subagent = true
	}
	for _, v := range []string{forked, parent} {
		if p.parent == "" && v != id && evidence.IsIdentifier(v) {
			p.parent = v
		}
	}
	return true
}

// codexSource looks into a header's source for the thread that spawned this one.
func codexSource(source value) (sub bool, parent string) {
	for name, v := range source.members() {
		if string(name) != "subagent" {
			continue
		}
		sub = true
		for name, v := range v.members() {
			if string(name) == "parent_thread_id" {
				parent = v.str()
			} else if id := v.member("parent_thread_id"); id != nil {
				parent = id.str()
			}
		}
	}
	return sub, parent
}

// turn ends the copied part at the first turn that is not older than the thread.
func (p *codexParser) turn(id string) {
	t := uuidTime(id)
	if t == 0 || p.copyDone {
		return
	}
	own := p.ownTime
	if own == 0 {
		return
	}
	if t >= own {
		p.copyDone = true // nothing is copied behind an own turn
	} else if p.parent != "" {
		p.copying = true
	}
}

// id is the session id as far as it is known.
func (p *codexParser) id() string {
	switch {
	case p.session != "":
		return p.session
	case p.fileID != "":
		return p.fileID
	case evidence.IsIdentifier(p.name):
		return p.name
	}
	return evidence.IDPart(p.file.Rel)
}

// holding says that a bare rollout may still name its working directory.
func (p *codexParser) holding() bool { return p.project == "" && p.seq <= p.cwdUntil }

// directory takes the working directory a bare rollout tells in its first messages.
func (p *codexParser) directory(e *codexEntry, end int64) error {
	if p.project != "" {
		return nil
	}
	if len(p.queue) > 0 && end-p.queue[0].rec.Start > codexWindowBytes {
		p.cwdUntil = p.seq - 1
	}
	if e.cwd != "" && (p.seq <= p.cwdUntil || !p.header && (!p.cwdGiven || p.cwdEarly)) {
		if p.cwdGiven {
			return ErrRestart
		}
		p.project = ProjectID(e.cwd, e.cwd)
	}
	return nil
}

func (p *codexParser) projectID() string {
	if p.project != "" {
		return p.project
	}
	if p.fallback == "" {
		p.fallback = ProjectID(p.file.Rel, p.file.Rel)
	}
	return p.fallback
}

// expire decides messages whose double did not come in time.
func (p *codexParser) expire(end int64) {
	for len(p.recent) > 0 && (p.recent[0].seq+codexWindow < p.seq || p.recent[0].end+codexWindowBytes < end) {
		p.recent[0].decided = true
		p.recent = p.recent[1:]
	}
}

// settle decides all of them: a turn is over.
func (p *codexParser) settle() {
	for _, y := range p.recent {
		y.decided = true
	}
	p.recent = p.recent[:0]
}

// pair looks for doubles of x and drops the lower one of each pair.
func (p *codexParser) pair(x *codexPending) error {
	for _, y := range p.recent {
		if y.rank == x.rank || !shareKey(x.keys, y.keys) {
			continue
		}
		if x.rank > y.rank {
			if x.took&(1<<y.rank) != 0 {
				continue
			}
			if y.gone {
				return ErrRestart
			}
			y.drop, y.decided = true, true
			x.took |= 1<<y.rank | y.took
			continue
		}
		if y.took&(1<<x.rank) == 0 {
			y.took |= 1<<x.rank | x.took
			x.drop = true
			break
		}
	}
	p.recent = slices.DeleteFunc(p.recent, func(y *codexPending) bool { return y.drop })
	if !x.drop {
		p.recent = append(p.recent, x)
	}
	return nil
}

func shareKey(a, b []uint64) bool {
	for _, k := range a {
		if slices.Contains(b, k) {
			return true
		}
	}
	return false
}

// release emits from the front of the queue what is decided.
func (p *codexParser) release(emit func(*Record, *Entry) error) error {
	if p.holding() {
		return nil
	}
	i := 0
	for ; i < len(p.queue) && p.queue[i].decided; i++ {
		x := p.queue[i]
		p.queue[i] = nil
		if x.drop {
			continue
		}
		rec := x.rec
		x.rec.Bytes = nil
		if err := p.out(&rec, x, emit); err != nil {
			return err
		}
	}
	if i > 0 {
		p.queue = append(p.queue[:0], p.queue[i:]...)
	}
	return nil
}

// out emits one entry.
func (p *codexParser) out(r *Record, x *codexPending, emit func(*Record, *Entry) error) error {
	if p.session == "" {
		p.session = p.id()
	}
	if p.project == "" {
		p.cwdGiven = true
	}
	e := x.entry
	e.Session, e.Project = p.session, p.projectID()
	e.Parent = p.lastID
	if x.user {
		if len(p.turns) == codexMaxTurns {
			p.turns = append(p.turns[:0], p.turns[1:]...)
		}
		p.turns = append(p.turns, codexUserTurn{at: p.emitted, parent: p.last})
	}
	p.last, p.lastID = codexRef{line: r.Line, sum: [8]byte(r.Digest[:8])}, e.ID
	p.emitted++
	x.entry = Entry{}
	return emit(r, &e)
}

// rollback takes the last n user turns off the branch.
func (p *codexParser) rollback(n int64) {
	if len(p.turns) == 0 {
		return
	}
	i := max(0, len(p.turns)-int(n))
	cut := p.turns[i]
	p.turns = p.turns[:i]
	if cut.at < p.base {
		p.relabel = true
	}
	for at := max(cut.at, p.base); at < p.emitted; at++ {
		p.off.Set(int(at - p.base))
	}
	p.last, p.lastID = cut.parent, cut.parent.id()
}

// Finish emits what waits and gives the file's result.
func (p *codexParser) Finish(emit func(*Record, *Entry) error) (Result, error) {
	if p.n.Records > 0 && !p.known {
		return Result{}, &ErrUnsupported{Reason: "no record of a known Codex format"}
	}
	given := p.cwdGiven
	for _, x := range p.queue {
		undecided := !x.decided
		if x.drop {
			continue
		}
		rec := x.rec
		if err := p.out(&rec, x, emit); err != nil {
			return Result{}, err
		}
		x.gone = undecided
	}
	p.queue = nil
	if !given && p.cwdGiven {
		p.cwdEarly = true
	}
	res := Result{
		Info: Info{
			Session: p.id(), Project: p.projectID(), Subagent: p.subagent, Parent: p.parent, Title: p.title,
			LastEntry: p.lastID, CompactionLine: p.compacted,
		},
		Counts:    p.n,
		OffBranch: p.off,
		Relabel:   p.relabel,
	}
	if p.shape != Document {
		res.State = p.save()
	}
	return res, nil
}

const codexState = 3

// save writes what load reads.
func (p *codexParser) save() []byte {
	b := []byte{codexState}
	num := func(v int64) { b = binary.AppendVarint(b, v) }
	str := func(s string) { num(int64(len(s))); b = append(b, s...) }
	ref := func(r codexRef) { num(r.line); b = append(b, r.sum[:]...) }
	flags := int64(0)
	for i, f := range p.flags() {
		if *f {
			flags |= 1 << i
		}
	}
	num(flags)
	for _, v := range p.numbers() {
		num(*v)
	}
	for _, s := range p.strings() {
		str(*s)
	}
	ref(p.last)
	num(int64(len(p.turns)))
	at := int64(0)
	for _, t := range p.turns {
		num(t.at - at)
		at = t.at
		ref(t.parent)
	}
	num(int64(len(p.recent)))
	for _, y := range p.recent {
		num(y.seq)
		num(y.end)
		gone := int64(0)
		if y.gone {
			gone = 1
		}
		num(int64(y.rank)<<5 | int64(y.took)<<1 | gone)
		num(int64(len(y.keys)))
		for _, k := range y.keys {
			b = binary.BigEndian.AppendUint64(b, k)
		}
	}
	return b
}

func (p *codexParser) flags() []*bool {
	return []*bool{&p.known, &p.torn, &p.header, &p.cwdGiven, &p.paginated, &p.subagent, &p.copying, &p.copyDone, &p.cwdEarly}
}

func (p *codexParser) numbers() []*int64 {
	return []*int64{&p.seq, &p.cwdUntil, &p.compacted, &p.ownTime, &p.metaTime, &p.emitted}
}

func (p *codexParser) strings() []*string {
	return []*string{&p.session, &p.project, &p.parent, &p.title}
}

// load takes a saved state; a state it does not fully understand is refused.
func (p *codexParser) load(b []byte) bool {
	if len(b) == 0 || b[0] != codexState {
		return false
	}
	b = b[1:]
	good := true
	num := func() int64 {
		v, n := binary.Varint(b)
		if n <= 0 {
			good, b = false, nil
			return 0
		}
		b = b[n:]
		return v
	}
	take := func(n int64) []byte {
		if n < 0 || n > int64(len(b)) {
			good, b = false, nil
			return nil
		}
		v := b[:n]
		b = b[n:]
		return v
	}
	sum := func() uint64 {
		if v := take(8); v != nil {
			return binary.BigEndian.Uint64(v)
		}
		return 0
	}
	ref := func() (r codexRef) {
		r.line = num()
		copy(r.sum[:], take(8))
		return r
	}
	flags := num()
	for i, f := range p.flags() {
		*f = flags>>i&1 == 1
	}
	for _, v := range p.numbers() {
		*v = num()
	}
	for _, s := range p.strings() {
		*s = string(take(num()))
	}
	p.last = ref()
	p.lastID = p.last.id()
	at := int64(0)
	for n := num(); n > 0 && good; n-- {
		at += num()
		p.turns = append(p.turns, codexUserTurn{at: at, parent: ref()})
	}
	for n := num(); n > 0 && good; n-- {
		y := &codexPending{seq: num(), end: num(), decided: true}
		v := num()
		y.rank, y.took, y.gone = int(v>>5&3), uint8(v>>1&15), v&1 == 1
		for k := num(); k > 0 && good; k-- {
			y.keys = append(y.keys, sum())
		}
		p.recent = append(p.recent, y)
	}
	p.base = p.emitted
	return good && len(b) == 0
}

var _ Parser = (*codexParser)(nil)
