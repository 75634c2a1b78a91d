package egress

import "time"

// MostConnections is how many connections a proxy has at once.
const MostConnections = mostConnections

// Hurry makes a proxy wait less for its clients and hosts, and less between two requests.
func (p *Proxy) Hurry(moving, between time.Duration) {
	p.head, p.idle, p.between = moving, moving, between
}
