//go:build !linux

package owner

import (
	"net"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// A process is one that listens. It cannot be told from others on this system.
type process struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"`
}

func notSupported() error {
	return fault.New(contract.NotSupported, "the owner's door is there only on Linux so far").WithHint("run dodo on Linux")
}

func self() (process, error) { return process{}, notSupported() }

func descends(pid int, from func(process) bool) (bool, error) { return false, notSupported() }

func peerOf(c *net.UnixConn) (pid int, uid uint32, err error) { return 0, 0, notSupported() }
