package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/privdir"
)

// The names in the installation directory.
const (
	jobsName   = "jobs"
	scriptName = "script"
)

const (
	// segmentBytes is the size of a file of output (spec dodo-behaviour 5.3); a small limit
	// makes smaller ones.
	segmentBytes = 1 << 20
	// headBytes is the size of the first one, which is never dropped: how a command begins
	// says as much as how it ends.
	headBytes = 32 << 10
	// segmentsLeast is how many there are at least before the oldest goes.
	segmentsLeast = 8
)

// givenBack is how many segments are dropped when the disk is full.
const givenBack = 2

// copyBytes is what is read from a command at once.
const copyBytes = 64 << 10

// floodRate bounds, in bytes a second, how fast a command writes once the oldest of its output
// is being dropped: what nobody will read must not keep the disk and the processor from others.
const floodRate = 100 << 20

// spools are the directories of output in the installation, one a job.
type spools struct {
	root *os.Root
	path string
}

func openSpools(installation string) (*spools, error) {
	path := filepath.Join(installation, jobsName)
	dir, err := privdir.Create(path, "the directory of jobs")
	if err != nil {
		return nil, state.Fault(err)
	}
	defer dir.Close()
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the directory of jobs: %w", err)
	}
	return &spools{root: root, path: path}, nil
}

// make makes the directory of a job, if it is not there.
func (s *spools) make(id string) error {
	if err := s.root.Mkdir(id, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// script writes a private script and gives its absolute path. It is never where another job
// or the workspace could name it, and never run again.
func (s *spools) script(id, source string) (path string, err error) {
	if err := s.make(id); err != nil {
		return "", err
	}
	f, err := s.root.OpenFile(filepath.Join(id, scriptName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(source)
	return filepath.Join(s.path, id, scriptName), errors.Join(err, f.Close())
}

// removeScript removes it, and a directory that is empty then. That one of the two is not
// there is usual.
func (s *spools) removeScript(id string) {
	_ = s.root.Remove(filepath.Join(id, scriptName))
	_ = s.root.Remove(id)
}

// remove removes what a job left.
func (s *spools) remove(id string) error { return s.root.RemoveAll(id) }

// list names the jobs that have a directory.
func (s *spools) list() ([]string, error) {
	d, err := s.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// A segment is one file of output: its name says where in the stream it begins, so that a
// stream needs no other record and outlives whoever wrote it.
type segment struct{ start, size int64 }

func (g segment) end() int64 { return g.start + g.size }

func segmentName(id string, of Stream, start int64) string {
	return filepath.Join(id, fmt.Sprintf("%s.%016x", of, start))
}

// segments lists a stream's files in order. A job without output has none.
func (s *spools) segments(id string, of Stream) ([]segment, error) {
	d, err := s.root.Open(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var list []segment
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, string(of)+".")
		start, err := strconv.ParseInt(digits, 16, 64)
		if !ok || err != nil {
			continue
		}
		in, err := s.root.Lstat(filepath.Join(id, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // dropped just now
		}
		if err != nil {
			return nil, err
		}
		list = append(list, segment{start, in.Size()})
	}
	slices.SortFunc(list, func(a, b segment) int { return int(min(max(a.start-b.start, -1), 1)) })
	return list, nil
}

// sizes are what a job wrote, as far as the files tell, and what they take.
func (s *spools) sizes(id string) (out, err, kept int64) {
	for of, size := range map[Stream]*int64{Stdout: &out, Stderr: &err} {
		list, _ := s.segments(id, of) // what cannot be read takes no room that could be given back
		for _, g := range list {
			kept += g.size
			*size = g.end()
		}
	}
	return out, err, kept
}

// A spool takes one stream of a job that runs. One goroutine writes to it.
type spool struct {
	s    *spools
	id   string
	of   Stream
	most int64 // bytes on the disk

	size atomic.Int64 // what was stored, also what was dropped since
	lost atomic.Int64 // what could not be stored
	kept int64        // on the disk now

	segments []segment // behind the first; the last one is open
	file     *os.File
	room     int64 // in the open one
	failed   bool
	flood    time.Time // when the oldest was dropped first
	flooded  int64     // bytes since

	done chan struct{} // closed when nothing more comes
}

func (s *spools) open(id string, of Stream, most int64) *spool {
	return &spool{s: s, id: id, of: of, most: most, done: make(chan struct{})}
}

// take reads a stream to its end. A terminal ends with an error of the device.
func (p *spool) take(from *os.File) {
	defer close(p.done)
	buf := make([]byte, copyBytes)
	for {
		n, err := from.Read(buf)
		p.write(buf[:n])
		if err != nil {
			break
		}
	}
	if p.file != nil {
		_ = p.file.Close() // what was written is there; it is not flushed on purpose
	}
}

// write stores bytes. After the first failure, such as a full disk, it only counts: there is
// no hole in what can be read. The oldest output makes room then for the database, which has
// the same disk and must take down how the job ends.
func (p *spool) write(b []byte) {
	if p.failed {
		p.lost.Add(int64(len(b)))
		return
	}
	for len(b) > 0 && !p.failed {
		if p.room == 0 && !p.roll() {
			break
		}
		n, err := p.file.Write(b[:min(int64(len(b)), p.room)])
		b = b[n:]
		p.room -= int64(n)
		p.kept += int64(n)
		p.flooded += int64(n)
		p.size.Add(int64(n))
		p.failed = err != nil
	}
	p.lost.Add(int64(len(b)))
	for n := 0; p.failed && n < givenBack && len(p.segments) > 2; n++ {
		p.drop()
	}
}

// drop removes the oldest output behind the head.
func (p *spool) drop() {
	oldest := p.segments[1]
	_ = p.s.root.Remove(segmentName(p.id, p.of, oldest.start)) // what is left goes with the job
	p.kept -= oldest.size
	p.segments = slices.Delete(p.segments, 1, 2)
}

// roll begins the next segment and drops the oldest ones that there is no room for any more.
func (p *spool) roll() bool {
	first := p.file == nil
	if !first {
		_ = p.file.Close()
		p.segments[len(p.segments)-1].size = p.size.Load() - p.segments[len(p.segments)-1].start
	}
	p.room = min(segmentBytes, p.most/segmentsLeast)
	if first {
		p.room = min(headBytes, p.room)
		if p.failed = p.s.make(p.id) != nil; p.failed {
			return false
		}
	}
	for p.kept+p.room > p.most && len(p.segments) > 2 {
		p.drop()
		p.slow()
	}
	start := p.size.Load()
	var err error
	p.file, err = p.s.root.OpenFile(segmentName(p.id, p.of, start), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	p.segments = append(p.segments, segment{start: start})
	p.failed = err != nil
	return err == nil
}

// slow lets a command that writes faster than anybody can read wait a moment.
func (p *spool) slow() {
	if p.flood.IsZero() {
		p.flood, p.flooded = time.Now(), 0
	}
	if due := time.Duration(p.flooded) * time.Second / floodRate; due > time.Since(p.flood) {
		<-time.After(min(due-time.Since(p.flood), 100*time.Millisecond))
	}
}
