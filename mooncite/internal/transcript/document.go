package transcript

import "io"

func scanDocument(r io.Reader, f File, at Position, p Parser, emit func(*Record, *Entry) error) (Position, error) {
	return at, nil
}
