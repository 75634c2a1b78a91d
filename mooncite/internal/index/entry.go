package index

import (
	"bytes"
	"encoding/hex"
	"strings"
)

// OfEntry lists the documents of entries with a raw id, newest first, at most limit.
// No list of ids is kept, so it reads the metadata of all blocks; ask it only for
// what looks like an id.
func (s *Snapshot) OfEntry(entry string, limit int) ([]int64, error) {
	probe := []byte(entry)
	if raw, ok := packUUID(entry); ok {
		probe = raw[:]
	} else if packed := appendID(nil, entry, nil); packed[0] == idHex {
		probe = packed[2:]
	} else if i := strings.LastIndexByte(entry, '-'); strings.HasPrefix(entry, "line-") && i > 5 {
		if d, err := hex.DecodeString(entry[i+1:]); err == nil && len(d) == 8 {
			probe = d // the beginning of the record's digest
		}
	}
	rows, err := s.conn.Query(s.ctx, "SELECT first, count, meta FROM blocks WHERE instr(meta, ?) > 0 ORDER BY first DESC", probe)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []int64
	for rows.Next() && len(out) < limit {
		var first int64
		var count int
		var meta []byte
		if err := rows.Scan(&first, &count, &meta); err != nil {
			return nil, err
		}
		if !bytes.Contains(meta, probe) {
			continue
		}
		if err := decodeSpans(meta, count, func(i int, sp *Span) bool {
			if sp.Entry == entry && !sp.Hidden {
				out = append(out, first+int64(i))
			}
			return len(out) < limit
		}); err != nil {
			return nil, err
		}
	}
	return out, rows.Err()
}

// Find returns the document of a span of a unit by the form its entry has in
// citations, and whether there is one.
func (s *Snapshot) Find(unit int64, matches func(entry string) bool, ordinal int) (doc int64, ok bool, err error) {
	last, hit := "", false
	err = s.EachSpan(unit, func(sp *Span) bool {
		if sp.Ordinal != ordinal || sp.Hidden {
			return true
		}
		if sp.Entry != last {
			last, hit = sp.Entry, matches(sp.Entry)
		}
		if hit {
			doc, ok = sp.Doc, true
		}
		return !ok
	})
	return doc, ok, err
}
