// Command lo prints how many packets went through the loopback interface of its network
// namespace. With "up" it first switches the interface on.
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "up" {
		check(up())
	}
	data, err := os.ReadFile("/proc/net/dev")
	check(err)
	for line := range strings.Lines(string(data)) {
		name, counts, ok := strings.Cut(line, ":")
		f := strings.Fields(counts)
		if ok && strings.TrimSpace(name) == "lo" && len(f) > 9 {
			fmt.Println("received", f[1], "sent", f[9])
			return
		}
		if ok {
			fmt.Println("another interface:", strings.TrimSpace(name))
			os.Exit(1)
		}
	}
	os.Exit(1)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "lo:", err)
		os.Exit(1)
	}
}

func up() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}
