package egress

import (
	"net/netip"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// rules are what the owner said. They never change.
type rules struct {
	allow, deny []entry
	only        bool // the owner named what is allowed
}

func newRules(allow, deny []string) (r rules, err error) {
	if r.allow, err = parseEntries(allow); err != nil {
		return r, err
	}
	if r.deny, err = parseEntries(deny); err != nil {
		return r, err
	}
	if r.only = len(r.allow) > 0; !r.only {
		r.allow = []entry{{all: true}}
	}
	return r, nil
}

func parseEntries(list []string) ([]entry, error) {
	var entries []entry
	for _, s := range list {
		e, err := parseEntry(s)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// allows and denies report whether an entry is about a port.
func (e entry) allows(port uint16) bool {
	return e.port == port || e.port == 0 && (port == 80 || port == 443)
}

func (e entry) denies(port uint16) bool { return e.port == 0 || e.port == port }

// grant is what allow entries say of a target before its addresses are known.
type grant int

const (
	none  grant = iota
	all         // everything public
	below       // a name above it is named
	exact       // its own name is named
)

// before judges what can be judged without the addresses: nobody is asked about a name
// that is refused anyway.
func (r rules) before(t target) (grant, error) {
	for _, e := range r.deny {
		if e.denies(t.port) && (e.all || t.name != "" && e.names(t.name) || t.name == "" && e.has(t.addr)) {
			return none, denied(t)
		}
	}
	g, byAddress, otherPort := none, false, false
	for _, e := range r.allow {
		said := e.grants(t)
		if !e.allows(t.port) {
			otherPort = otherPort || said > none
			continue
		}
		g, byAddress = max(g, said), byAddress || e.prefix.IsValid()
	}
	switch {
	case t.name != "" && local(t.name) && g < below:
		return g, r.refuse(t, "its name is one of this machine or its network")
	case g > none || byAddress: // what names addresses is asked when they are known
		return g, nil
	case otherPort:
		return g, r.refuse(t, "its port is not one that may be reached")
	}
	return g, r.refuse(t, "it is not among what the owner allows")
}

// grants is what an entry says of a target's host.
func (e entry) grants(t target) grant {
	switch {
	case e.all:
		return all
	case t.name == "" || !e.names(t.name):
		return none
	case e.below:
		return below
	}
	return exact
}

// has reports whether an entry is for an address.
func (e entry) has(a netip.Addr) bool { return e.prefix.IsValid() && e.prefix.Contains(a) }

// named reports whether an allow entry is for a target's address.
func (r rules) named(a netip.Addr, port uint16) bool {
	for _, e := range r.allow {
		if e.allows(port) && e.has(a) {
			return true
		}
	}
	return false
}

// judge decides on one address of a target. g is what before said.
func (r rules) judge(t target, g grant, a netip.Addr) error {
	for _, e := range r.deny {
		if e.denies(t.port) && e.has(a) {
			return denied(t)
		}
	}
	need, what := look(a)
	switch {
	case need == never:
		return setAside(t, what)
	case r.named(a, t.port):
		return nil
	case g == none:
		return r.refuse(t, "it is not among what the owner allows")
	case need == open,
		need == private && g == exact,
		need == loopback && g == exact && ownName(t.name):
		return nil
	}
	way := t // what the owner would have to name
	if need != private {
		way.name, way.addr = "", a
	}
	return r.hint(way, fault.New(contract.Forbidden, "no connection is made to %s: its address is not public (%s)", t, what))
}

// What the details of a fault tell: the setting that refused, and the entry of egressAllow that
// would let it through.
const (
	bySetting = "setting"
	allowing  = "allowEntry"
)

// denied is the fault of what a deny entry names.
func denied(t target) error {
	return fault.New(contract.Forbidden, "no connection is made to %s: the owner's setting egressDeny names it", t).
		WithHint("the owner can change it: `dodo config get egressDeny` shows the list").With(bySetting, "egressDeny")
}

// setAside is the fault of an address that no entry lets through.
func setAside(t target, what string) error {
	return fault.New(contract.Forbidden, "no connection is made to %s: its address is set aside (%s)", t, what).WithHint("use another host")
}

// refuse is the fault of what no allow entry names.
func (r rules) refuse(t target, why string) error {
	if t.name == "" {
		if need, what := look(t.addr); need == never {
			return setAside(t, what)
		}
	}
	return r.hint(t, fault.New(contract.Forbidden, "no connection is made to %s: %s", t, why))
}

// hint says by which entry the owner would allow it.
func (r rules) hint(t target, f *fault.Error) error {
	f = f.With(bySetting, "egressAllow").With(allowing, t.String())
	if r.only {
		return f.WithHint("the owner can add %s to the setting egressAllow; `dodo config set egressAllow …` writes the whole list", t)
	}
	return f.WithHint("the owner can allow it: `dodo config set egressAllow '*' '%s'`, where * keeps everything public", t)
}
