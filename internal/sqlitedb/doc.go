// Package sqlitedb opens SQLite files. It alone knows the driver.
//
// What it is: one pinned connection that writes and a few that read, with the
// pragmas both programs want, and numbered migrations.
//
// What one may rely on: readers never wait for the writer, and each read sees one
// state of the database from its first statement to its last; a file that another
// program made, that a newer version made or that is damaged is refused before a
// byte of it changes, and the fault says the way out; all missing migrations are
// applied in one transaction or not at all; the write-ahead log does not outgrow its
// bound unless somebody reads for long; errors come as faults whose text has no SQL
// and no path.
//
// What it deliberately does not do: it holds no schema of its own, migrates nothing
// backwards, repairs nothing, and gives nobody the driver's connection.
package sqlitedb
