package mcpserve

import (
	"maps"
	"net/http"
	"sync"
	"time"
)

// awake is a response that says something when it was silent for long, so that nobody between
// client and server takes it for dead: a comment of the event stream (WHATWG HTML, section
// 9.2.6). Whatever waits that long is answered as a stream; refusals are quick.
type awake struct {
	w     http.ResponseWriter
	pause time.Duration
	timer *time.Timer
	own   http.Header // what who answers wants in the header; only it looks at that

	mu    sync.Mutex // guards what follows, and the writing
	begun bool       // the header is out
	ended bool
}

// wake returns a response that stays awake until stop is called.
func wake(w http.ResponseWriter, pause time.Duration) *awake {
	a := &awake{w: w, pause: pause, own: http.Header{}}
	a.mu.Lock() // it may beat at once
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(pause, a.beat)
	return a
}

func (a *awake) beat() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	if !a.begun {
		a.begun = true
		h := a.w.Header()
		h.Set("Content-Type", eventStream)
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set(unbuffered, "no")
		a.w.WriteHeader(http.StatusOK)
	}
	a.hurry()
	_, _ = a.w.Write([]byte(": waiting\n\n"))
	_ = http.NewResponseController(a.w).Flush()
	a.timer.Reset(a.pause)
}

// writeTime is how long a client may take to read a part of an answer. One that takes longer
// is gone, or wants to hold us up.
const writeTime = time.Minute

// hurry gives what is written next its time.
func (a *awake) hurry() {
	_ = http.NewResponseController(a.w).SetWriteDeadline(time.Now().Add(writeTime)) // tests may have a writer without one
}

const (
	eventStream = "text/event-stream"
	unbuffered  = "X-Accel-Buffering" // asks proxies to hand on what comes as it comes
)

// begin sends the header, once.
func (a *awake) begin(status int) {
	if a.begun {
		return
	}
	a.begun = true
	maps.Copy(a.w.Header(), a.own)
	if a.own.Get("Content-Type") == eventStream {
		a.w.Header().Set(unbuffered, "no")
	}
	a.w.WriteHeader(status)
}

// stop ends the waking. The response is over then.
func (a *awake) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.timer.Stop()
}

// Header is what the header will be.
func (a *awake) Header() http.Header { return a.own }

// WriteHeader sends the header, unless waking did so before.
func (a *awake) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(status)
}

// Write sends a part of the answer.
func (a *awake) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(http.StatusOK)
	if !a.ended {
		a.timer.Reset(a.pause)
	}
	a.hurry()
	return a.w.Write(b)
}

// FlushError sends what was written.
func (a *awake) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(http.StatusOK)
	return http.NewResponseController(a.w).Flush()
}

// Unwrap is for http.ResponseController.
func (a *awake) Unwrap() http.ResponseWriter { return a.w }

// noting is a response that tells the session that it names.
type noting struct {
	http.ResponseWriter
	note func(id string)
	done bool
}

func (n *noting) see() {
	if id := n.Header().Get(sessionHeader); id != "" && !n.done {
		n.done = true
		n.note(id)
	}
}

// WriteHeader notes and sends the header.
func (n *noting) WriteHeader(status int) {
	n.see()
	n.ResponseWriter.WriteHeader(status)
}

// Write notes and sends.
func (n *noting) Write(b []byte) (int, error) {
	n.see()
	return n.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }
