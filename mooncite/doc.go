// Command mooncite finds what was said in past AI conversations and proves it
// against the source bytes. It never changes a history and never uses a network.
package main

//go:generate go test . -run ^TestDocs -update
