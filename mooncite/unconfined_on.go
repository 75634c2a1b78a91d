//go:build mooncite_unconfined

package main

const unconfined = true
