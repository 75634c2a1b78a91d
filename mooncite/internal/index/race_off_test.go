//go:build !race

package index_test

// underRace says that everything is many times slower.
const underRace = false
