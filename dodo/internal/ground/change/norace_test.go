//go:build !race

package change_test

const raceEnabled = false
