package confine

import (
	"slices"

	"golang.org/x/sys/unix"
)

// What the tests of the tables look into.
var (
	Compile    = compile
	Calls      = calls
	JailCalls  = jailCalls
	MasksOf    = masksOf
	LevelOf    = levelOf
	AuditArch  = uint32(auditArch)
	RetAllow   = uint32(retAllow)
	RetKill    = uint32(retKill)
	RetDenied  = uint32(retDenied)
	RetUnknown = uint32(retUnknown)
	Newest     = uint32(newest)
)

type (
	Table      = table
	Masks      = masks
	SockFilter = unix.SockFilter
)

// Expect is what the table says of a call, without a program.
func (t table) Expect(number uint32, args []uint64) uint32 {
	if number > newest {
		return retUnknown
	}
	for _, c := range t.calls {
		if c.number != number {
			continue
		}
	cases:
		for _, b := range c.cases {
			for _, d := range b.conditions {
				if slices.Contains(d.values, uint32(args[d.arg])&d.mask) == d.not {
					continue cases
				}
			}
			return b.action
		}
		return c.action
	}
	return t.otherwise
}

func (m masks) Files() uint64 { return m.files }
func (m masks) Net() uint64   { return m.net }
func (m masks) Scopes() uint64 {
	return m.scopes
}
