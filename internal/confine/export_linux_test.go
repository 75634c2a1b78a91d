package confine

import "golang.org/x/sys/unix"

// What the tests of the tables look into.
var (
	Compile    = compile
	Calls      = calls
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
	Call       = call
	Table      = table
	Masks      = masks
	SockFilter = unix.SockFilter
)

func (t table) Allowed() []call   { return t.allowed }
func (t table) Unknown() []uint32 { return t.unknown }

// Judges reports what a call's condition says of an argument.
func (c call) Judges(argument uint64) bool {
	if c.values == nil {
		return true
	}
	for _, v := range c.values {
		if uint32(argument)&c.mask == v {
			return true
		}
	}
	return false
}

func (c call) Number() uint32 { return c.number }
func (c call) Arg() uint32    { return c.arg }
func (m masks) Files() uint64 { return m.files }
func (m masks) Net() uint64   { return m.net }
func (m masks) Scopes() uint64 {
	return m.scopes
}
