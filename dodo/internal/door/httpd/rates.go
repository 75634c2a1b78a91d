package httpd

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates are how often something may happen: that many a second for long, and so many at once.
type Rates struct {
	Principal Rate // calls of one login
	Address   Rate // requests of one address that nobody has been established for
	Login     Rate // requests on the way to a login, of all addresses elsewhere
}

// A Rate is a frequency and a burst.
type Rate struct {
	PerSecond float64
	Burst     int
}

// DefaultRates are those of spec dodo-behaviour 2.7, and decisions 3.
var DefaultRates = Rates{
	Principal: Rate{20, 100},
	Address:   Rate{20, 200},
	Login:     Rate{12, 120},
}

// mostBuckets bounds the memory for them. What was not used for long makes room.
const mostBuckets = 4096

// buckets have one limiter for each key.
type buckets struct {
	rate Rate

	mu   sync.Mutex // guards what follows
	keys map[string]*bucket
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

// take takes one; otherwise it says how long to wait.
func (b *buckets) take(key string, now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.keys[key]
	if x == nil {
		if len(b.keys) >= mostBuckets {
			b.shrink(now)
		}
		x = &bucket{Limiter: rate.NewLimiter(rate.Limit(b.rate.PerSecond), b.rate.Burst)}
		if b.keys == nil {
			b.keys = map[string]*bucket{}
		}
		b.keys[key] = x
	}
	x.used = now
	r := x.ReserveN(now, 1)
	if d := r.DelayFrom(now); d > 0 {
		r.CancelAt(now)
		return d, false
	}
	return 0, true
}

// shrink forgets the buckets that are full again, and the oldest when none is.
func (b *buckets) shrink(now time.Time) {
	var oldest string
	for key, x := range b.keys {
		if x.TokensAt(now) >= float64(b.rate.Burst) {
			delete(b.keys, key)
		} else if oldest == "" || x.used.Before(b.keys[oldest].used) {
			oldest = key
		}
	}
	if len(b.keys) >= mostBuckets {
		delete(b.keys, oldest)
	}
}

// here is the key of requests that were made on this machine: they have a bucket of their
// own, so that no flood from elsewhere keeps the owner's browser and clients out.
const here = "here"

// address is whose bucket a request is counted in, and whether it was made on this machine.
// What a tunnel hands on says so by its headers, which only ever take the reserve away.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() || forwarded(r) {
		return "elsewhere " + host
	}
	return here
}

// forwarded reports whether a request was handed on by a proxy.
func forwarded(r *http.Request) bool {
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "Cf-") || name == "X-Real-Ip" {
			return true
		}
	}
	return false
}
