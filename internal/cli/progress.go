package cli

import (
	"math"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// quick work shows no bar at all.
const quick = 300 * time.Millisecond

// Progress is a bar on a terminal's standard error, and nothing anywhere else.
type Progress struct {
	out   *Streams
	label string
	begun time.Time

	mu  sync.Mutex // guards what follows
	bar *progressbar.ProgressBar
	end bool
}

// Progress returns a bar that appears when the work takes a while. Call Done.
func (s *Streams) Progress(label string) *Progress {
	return &Progress{out: s, label: label, begun: time.Now()}
}

// Report moves the bar. It has the shape of op.Call's Progress; a total of 0 means
// unknown. It may be called from any goroutine.
func (p *Progress) Report(done, total float64, message string) {
	if !p.out.ErrTerminal {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end || p.bar == nil && time.Since(p.begun) < quick {
		return
	}
	most := int64(math.Round(total))
	if most <= 0 {
		most = -1
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(most,
			progressbar.OptionSetWriter(p.out.Err),
			progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(most > 0),
		)
	}
	if p.bar.GetMax64() != most {
		p.bar.ChangeMax64(most)
	}
	if message == "" {
		message = p.label
	}
	p.bar.Describe(message)
	// Reaching the end would finish the bar; Done does that.
	at := int64(done)
	if most > 0 {
		at = min(at, most-1)
	}
	_ = p.bar.Set64(at) // a terminal that went away is no failure of the work
}

// Done takes the bar away.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = true
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Close()
		p.bar = nil
	}
}
