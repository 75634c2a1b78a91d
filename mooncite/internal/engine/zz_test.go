package engine_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/source"
)

func TestZZ(t *testing.T) {
	home := os.Getenv("ZZ")
	if home == "" {
		t.Skip()
	}
	debug.SetGCPercent(300)
	debug.SetMemoryLimit(64 << 20)
	places, _ := source.PlacesOf(map[string]string{"HOME": home, "MOONCITE_STATE_DIR": t.TempDir() + "/s"})
	for range 4 {
		t0 := time.Now()
		e, err := engine.Open(context.Background(), places, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Rebuild(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		e.Close()
		fmt.Println(time.Since(t0))
	}
}
