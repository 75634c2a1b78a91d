package op

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Texter is an answer that can say itself as text. The text must state the same
// facts as the value's JSON: some readers get only the one, some only the other.
type Texter interface {
	Text() string
}

// Fitter is an answer that can be cut when it is too long for a reader who did not
// ask for length. Fit returns a value of the same type whose JSON and whose Text
// are each at most max bytes, with detail in its field of type *[Detail]. The
// receiver must stay as it was. What matters most must survive.
//
// A type that is a Fitter must have such a field, or [New] panics. An answer that
// is not a Fitter is always given whole.
type Fitter interface {
	Fit(max int, detail *Detail) any
}

// Failing is an answer that may itself say that the call failed.
type Failing interface {
	Failed() bool
}

// Attaching is an answer with pictures or sounds beside its text.
type Attaching interface {
	Blocks() []Block
}

// Block is a picture or a sound.
type Block struct {
	MIME string // image/png, audio/wav; image or audio is what counts for the door
	Data []byte
}

// Fits reports whether an answer's JSON and its text are each at most max bytes: what a
// [Fitter] asks while it cuts.
func Fits(v Texter, max int) bool {
	data, err := Encode(v)
	return err == nil && len(data) <= max && len(v.Text()) <= max
}

// Detail says that an answer was cut and where the whole of it is for a while.
type Detail struct {
	Kind       string `json:"kind" doc:"Always progressive_result." enum:"progressive_result"`
	Complete   bool   `json:"complete" doc:"False: this answer was cut to fit."`
	FullResult *Full  `json:"fullResult,omitempty" doc:"Where the whole answer can be read."`
}

// Full points to the whole of an answer that was cut.
type Full struct {
	URI       string `json:"uri" doc:"A resource of this server."`
	Bytes     int    `json:"bytes" doc:"Size of that resource."`
	ExpiresAt string `json:"expiresAt" doc:"When it goes away."`
}

// Encode writes an answer as the JSON its output schema describes: a nil list is
// an empty list, a nil map an empty object, map members are sorted, broken UTF-8 is
// replaced, and omitempty means what encoding/json means by it. Every door uses it,
// so that every door shows the same.
func Encode(v any) (json.RawMessage, error) {
	return jsonv2.Marshal(v, asDescribed)
}

// EncodedLen is how many bytes a text takes as JSON.
func EncodedLen(text string) int {
	raw, err := Encode(text)
	if err != nil {
		return 6 * len(text) // as if all of it were escaped
	}
	return len(raw)
}

var asDescribed = jsonv2.JoinOptions(
	jsonv2.Deterministic(true),
	jsontext.AllowInvalidUTF8(true),
	jsonv1.OmitEmptyWithLegacySemantics(true),
)
