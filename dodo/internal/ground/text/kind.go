package text

import (
	"bytes"
	"unicode/utf8"
)

// HeadBytes is how much of a file [Detect] should be given.
const HeadBytes = 64 << 10

// What text is called.
const (
	textName = "text"
	textMIME = "text/plain"
)

// nulBytes is how far a NUL makes a file binary.
const nulBytes = 8192

// A Kind says what bytes are.
type Kind struct {
	// Encoding is that of text; empty when the bytes are not UTF-8 and bear no mark.
	Encoding Encoding
	// BOM is the length of the mark at the beginning.
	BOM int
	// Binary says that the bytes are no text in any encoding: they hold a NUL or begin
	// as a known format does. When neither Encoding nor Binary is set, they may be text in
	// an encoding that has to be asked for.
	Binary bool
	// Name and MIME name the kind.
	Name, MIME string
	// Guess is an encoding worth asking for: UTF-16 without its mark.
	Guess Encoding
}

// Detect tells the kind of a file from its first bytes, [HeadBytes] or all of it; whole
// says that it is all. A character that the end of a head cuts is not held against it.
func Detect(head []byte, whole bool) Kind {
	for _, e := range []Encoding{UTF8, UTF16LE, UTF16BE} {
		n := e.bom(head)
		if n == 0 {
			continue
		}
		if body := head[n:]; e.holds(body, whole) && !e.hasNUL(body[:min(len(body), nulBytes)]) {
			return Kind{Encoding: e, BOM: n, Name: textName, MIME: textMIME}
		}
	}
	nul := bytes.IndexByte(head[:min(len(head), nulBytes)], 0) >= 0
	if !nul && UTF8.holds(head, whole) {
		return Kind{Encoding: UTF8, Name: textName, MIME: textMIME}
	}
	for _, m := range magics {
		if m.is(head) {
			return Kind{Binary: true, Name: m.name, MIME: m.mime}
		}
	}
	if nul {
		return Kind{Binary: true, Name: "data", MIME: "application/octet-stream", Guess: guess16(head, whole)}
	}
	return Kind{Name: "text in an unknown encoding", MIME: textMIME}
}

// holds reports whether bytes are text in an encoding.
func (e Encoding) holds(b []byte, whole bool) bool {
	if e == UTF8 && whole {
		return utf8.Valid(b)
	}
	for len(b) > 0 {
		switch n := e.char(b); {
		case n < 0:
			return false
		case n == 0:
			return !whole
		default:
			b = b[n:]
		}
	}
	return true
}

func (e Encoding) hasNUL(b []byte) bool {
	for u := e.unit(); len(b) >= u; b = b[u:] {
		if b[0] == 0 && b[u-1] == 0 {
			return true
		}
	}
	return false
}

// guess16 takes bytes for UTF-16 without a mark when they are valid in it and most of
// their units are ASCII.
func guess16(b []byte, whole bool) Encoding {
	if len(b) < 4 || whole && len(b)%2 != 0 {
		return ""
	}
	units := len(b) / 2
	var ascii [2]int
	for i := range units {
		lo, hi := b[2*i], b[2*i+1]
		if hi == 0 && lo != 0 {
			ascii[0]++
		} else if lo == 0 && hi != 0 {
			ascii[1]++
		}
	}
	for i, e := range []Encoding{UTF16LE, UTF16BE} {
		if ascii[i]*10 >= units*7 && e.holds(b[:units*2], whole) {
			return e
		}
	}
	return ""
}

// A magic is how the files of a format begin.
type magic struct {
	at         int
	bytes      string
	more       string // further bytes that must stand at moreAt
	moreAt     int
	name, mime string
}

func (m magic) is(b []byte) bool {
	return has(b, m.at, m.bytes) && has(b, m.moreAt, m.more)
}

func has(b []byte, at int, s string) bool {
	return len(b) >= at+len(s) && string(b[at:at+len(s)]) == s
}

// magics are looked at only for what is not text. The first that fits counts.
var magics = []magic{
	{bytes: "\x89PNG\r\n\x1a\n", name: "PNG image", mime: "image/png"},
	{bytes: "\xff\xd8\xff", name: "JPEG image", mime: "image/jpeg"},
	{bytes: "GIF87a", name: "GIF image", mime: "image/gif"},
	{bytes: "GIF89a", name: "GIF image", mime: "image/gif"},
	{bytes: "RIFF", more: "WEBP", moreAt: 8, name: "WebP image", mime: "image/webp"},
	{bytes: "RIFF", more: "WAVE", moreAt: 8, name: "WAV sound", mime: "audio/wav"},
	{bytes: "RIFF", more: "AVI ", moreAt: 8, name: "AVI video", mime: "video/x-msvideo"},
	{at: 4, bytes: "ftypavif", name: "AVIF image", mime: "image/avif"},
	{at: 4, bytes: "ftypheic", name: "HEIC image", mime: "image/heic"},
	{at: 4, bytes: "ftypM4A", name: "MPEG-4 sound", mime: "audio/mp4"},
	{at: 4, bytes: "ftypqt", name: "QuickTime video", mime: "video/quicktime"},
	{at: 4, bytes: "ftyp", name: "MPEG-4 video", mime: "video/mp4"},
	{bytes: "II*\x00", name: "TIFF image", mime: "image/tiff"},
	{bytes: "MM\x00*", name: "TIFF image", mime: "image/tiff"},
	{bytes: "\x00\x00\x01\x00", name: "icon", mime: "image/x-icon"},
	{bytes: "BM", more: "\x00\x00\x00\x00", moreAt: 6, name: "BMP image", mime: "image/bmp"},
	{bytes: "8BPS", name: "Photoshop image", mime: "image/vnd.adobe.photoshop"},
	{bytes: "%PDF-", name: "PDF document", mime: "application/pdf"},
	{bytes: "PK\x03\x04", more: "mimetypeapplication/epub+zip", moreAt: 30, name: "EPUB book", mime: "application/epub+zip"},
	{bytes: "PK\x03\x04", name: "zip archive (or jar, docx, xlsx, ...)", mime: "application/zip"},
	{bytes: "PK\x05\x06", name: "empty zip archive", mime: "application/zip"},
	{bytes: "\x1f\x8b", name: "gzip data", mime: "application/gzip"},
	{bytes: "BZh", name: "bzip2 data", mime: "application/x-bzip2"},
	{bytes: "\xfd7zXZ\x00", name: "xz data", mime: "application/x-xz"},
	{bytes: "\x28\xb5\x2f\xfd", name: "zstd data", mime: "application/zstd"},
	{bytes: "\x04\x22\x4d\x18", name: "LZ4 data", mime: "application/x-lz4"},
	{bytes: "7z\xbc\xaf\x27\x1c", name: "7-Zip archive", mime: "application/x-7z-compressed"},
	{bytes: "Rar!\x1a\x07", name: "RAR archive", mime: "application/vnd.rar"},
	{at: 257, bytes: "ustar", name: "tar archive", mime: "application/x-tar"},
	{bytes: "!<arch>\n", name: "ar archive", mime: "application/x-archive"},
	{bytes: "\x7fELF", name: "ELF program or library", mime: "application/x-elf"},
	{bytes: "MZ", name: "Windows program or library", mime: "application/vnd.microsoft.portable-executable"},
	{bytes: "\xcf\xfa\xed\xfe", name: "Mach-O program or library", mime: "application/x-mach-binary"},
	{bytes: "\xce\xfa\xed\xfe", name: "Mach-O program or library", mime: "application/x-mach-binary"},
	{bytes: "\xca\xfe\xba\xbe\x00\x00\x00", more: "", name: "Java class or Mach-O universal file", mime: "application/octet-stream"},
	{bytes: "\x00asm", name: "WebAssembly module", mime: "application/wasm"},
	{bytes: "SQLite format 3\x00", name: "SQLite database", mime: "application/vnd.sqlite3"},
	{bytes: "ID3", name: "MP3 sound", mime: "audio/mpeg"},
	{bytes: "\xff\xfb", name: "MP3 sound", mime: "audio/mpeg"},
	{bytes: "OggS", name: "Ogg sound or video", mime: "application/ogg"},
	{bytes: "fLaC", name: "FLAC sound", mime: "audio/flac"},
	{bytes: "\x1a\x45\xdf\xa3", name: "Matroska or WebM video", mime: "video/x-matroska"},
	{bytes: "wOFF", name: "WOFF font", mime: "font/woff"},
	{bytes: "wOF2", name: "WOFF2 font", mime: "font/woff2"},
	{bytes: "\x00\x01\x00\x00\x00", name: "TrueType font", mime: "font/ttf"},
	{bytes: "OTTO", name: "OpenType font", mime: "font/otf"},
	{bytes: "PACK\x00\x00\x00", name: "git pack", mime: "application/x-git-pack"},
	{bytes: "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", name: "old Office document", mime: "application/x-ole-storage"},
	{bytes: "PAR1", name: "Parquet data", mime: "application/vnd.apache.parquet"},
	{bytes: "\x89HDF\r\n\x1a\n", name: "HDF5 data", mime: "application/x-hdf5"},
	{bytes: "GGUF", name: "GGUF model", mime: "application/octet-stream"},
}
