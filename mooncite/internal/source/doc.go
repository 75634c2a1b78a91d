// Package source finds history files and reads them.
//
// What it is: the authorized roots (built in, automatic, and registered in
// sources.json), the discovery of files below them, the search for changes that
// comes before every recall, and coherent reads.
//
// What one may rely on: files are only ever opened for reading, their access times
// stay, and nothing outside an authorized root is opened; no symbolic link is
// followed, but each that hides a transcript is counted and named; one bad root, one
// bad sources.json, one unreadable directory or one bad file never spoils the rest;
// no physical file is given out under two roots; no number of files is too many;
// texts of faults have no path: a file is named by origin, base name and the eight
// hex digits of evidence.ShortName.
//
// What it deliberately does not do: it parses no transcript, stores nothing but
// sources.json, watches nothing in the background and uses no network.
package source
