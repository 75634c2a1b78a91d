//go:build !mooncite_unconfined

package main

// unconfined is true only in a build that measures what confinement costs.
const unconfined = false
