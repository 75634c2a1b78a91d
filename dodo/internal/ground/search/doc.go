// Package search finds text and names of files.
package search
