// Package config is the owner's file, config.json of the installation directory, and what a
// repository may hint at in .dodo.json.
//
// What it is: where the installation directory is, the settings with their bounds, reading
// and changing them, and the decoding of hints.
//
// What one may rely on: a file with an unknown setting, a value out of bounds or broken JSON
// is a failure that names the setting, never a default; the two that only narrow when they
// are not understood do so: an access mode that is missing or unknown is managed, as it is
// when the file is gone from an installation that was used; a change holds a lock, reads
// anew and replaces the file in one step; hints that are not understood whole are ignored
// whole, and no hint gives anybody anything.
//
// What it deliberately does not do: it opens no database (who changes the access mode mirrors
// it in the state), and it reads no environment by itself.
package config
