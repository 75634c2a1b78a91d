package owner

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/internal/fault"
)

// Bounds of the protocol.
const (
	protocol   = 1
	maxFrame   = 1 << 20 // bytes, with the line feed
	nonceBytes = 32
	maxCommand = 100 // bytes of a command's name
)

// The messages, each a line of JSON. A payload is text that both ends hash as it stands.
type (
	hello struct {
		Version int    `json:"version"`
		Nonce   string `json:"nonce"`
		Mac     string `json:"mac,omitzero"` // of the server only
	}
	sealed struct {
		Payload string `json:"payload"`
		Mac     string `json:"mac"`
	}
	request struct {
		ID   string          `json:"id"`
		Cmd  string          `json:"cmd"`
		Args json.RawMessage `json:"args"`
	}
	response struct {
		ID     string          `json:"id"`
		Result json.RawMessage `json:"result,omitzero"`
		Error  *problem        `json:"error,omitzero"`
	}
	problem struct {
		Code      fault.Code     `json:"code"`
		Message   string         `json:"message"`
		Hint      string         `json:"hint,omitzero"`
		Retryable bool           `json:"retryable,omitzero"`
		Detail    map[string]any `json:"detail,omitzero"`
	}
)

// errProtocol is why a connection ends without a word.
var errProtocol = errors.New("the other end does not speak the protocol")

// readFrame reads one line.
func readFrame(r *bufio.Reader, into any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxFrame {
			return fmt.Errorf("%w: a frame is too long", errProtocol)
		}
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	if err := jsonv2.Unmarshal(line, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%w: %w", errProtocol, err)
	}
	return nil
}

// errTooLong says that an answer or a question does not fit a frame.
var errTooLong = errors.New("the message is longer than a frame")

// writeFrame writes one line in one write.
func writeFrame(w io.Writer, v any) error {
	line, err := jsonv2.Marshal(v)
	if err != nil {
		return err
	}
	if len(line)+1 > maxFrame {
		return errTooLong
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

func newNonce(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// isHex reports whether s is n bytes as lower-case hex.
func isHex(s string, n int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == n && hex.EncodeToString(b) == s
}

// mac is the proof of who knows the token, over a JSON list of the parts.
func mac(token []byte, parts ...string) string {
	list, err := jsonv2.Marshal(parts)
	if err != nil {
		return "" // only for text that is not UTF-8, which no proof fits
	}
	h := hmac.New(sha256.New, token)
	h.Write(list)
	return hex.EncodeToString(h.Sum(nil))
}

// proves reports whether a proof is the right one.
func proves(got string, token []byte, parts ...string) bool {
	want := mac(token, parts...)
	return want != "" && hmac.Equal([]byte(got), []byte(want))
}

// A channel is a connection whose ends know each other.
type channel struct {
	token          []byte
	client, server string // nonces
}

// seal makes a message of a kind.
func (c channel) seal(kind string, v any) (sealed, error) {
	text, err := jsonv2.Marshal(v)
	if err != nil {
		return sealed{}, err
	}
	return sealed{Payload: string(text), Mac: mac(c.token, kind, c.client, c.server, string(text))}, nil
}

// open takes a message of a kind apart.
func (c channel) open(kind string, s sealed, into any) error {
	if !proves(s.Mac, c.token, kind, c.client, c.server, s.Payload) {
		return fmt.Errorf("%w: a wrong proof", errProtocol)
	}
	if err := jsonv2.Unmarshal([]byte(s.Payload), into, jsonv2.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%w: %w", errProtocol, err)
	}
	return nil
}
