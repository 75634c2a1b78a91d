package main

import (
	"context"
	"os"

	"localmcp/mooncite/internal/index"
)

// floor returns how many seconds one writer takes to put the token text of the
// index in stateDir into an empty table of the same kind and to do nothing else: no
// reading of sources, no parsing, no other tables. A cold rebuild is judged against
// it in the same run, on the same machine, so that the goal holds everywhere.
func floor(stateDir string) (float64, error) {
	store, err := index.Open(stateDir)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	dir, err := os.MkdirTemp("", "mooncite-floor-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	took, err := store.Floor(context.Background(), dir)
	return took.Seconds(), err
}
