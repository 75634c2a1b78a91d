// Package testenv gives tests a world of their own.
//
// What it is: an isolated home, golden files, fingerprints of directory trees, programs
// built once a test run, and the commands that scripts need. Only tests import it.
//
// What one may rely on: nothing here reads or changes the real home, and the process
// environment is never changed; a golden file that is missing fails the test unless
// -update is given; a fingerprint changes when any content, mode, link, name or
// modification time below the tree does.
//
// What it deliberately does not do: it has no assertions (tests compare with go-cmp)
// and no doubles of products; those live beside the tests that need them.
package testenv
