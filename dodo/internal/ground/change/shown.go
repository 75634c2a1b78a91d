package change

import (
	"strings"

	"localmcp/dodo/internal/ground/edit"
	"localmcp/internal/op"
)

// diffBytes bounds the differences of one answer together, as they stand in JSON. One alone
// has at most edit.MaxDiff bytes.
const diffBytes = 32 << 10

// A shownFile is one file of a plan as it is shown.
type shownFile struct {
	Path          string  `json:"path"`
	DestPath      string  `json:"destPath,omitempty"`
	Action        Action  `json:"action" doc:"create, modify, delete, move or make_directory."`
	BeforeHash    *string `json:"beforeHash" doc:"Hash of what is there; null when there is nothing."`
	AfterHash     *string `json:"afterHash" doc:"Hash of what will be there; null when there will be nothing."`
	Diff          string  `json:"diff" doc:"The difference as a unified diff; empty when it is left out."`
	DiffTruncated bool    `json:"diffTruncated" doc:"The difference is not shown whole."`
	BytesBefore   int64   `json:"bytesBefore"`
	BytesAfter    int64   `json:"bytesAfter"`
}

// show makes the files of a plan fit into an answer. Every file is there; differences are
// shown while there is room, and cut says that some are not whole.
func (s *Service) show(p *Plan) (files []shownFile, cut bool) {
	room := min(diffBytes, s.Limits.ToolContentBytes/2)
	files = make([]shownFile, len(p.Files))
	for i, f := range p.Files {
		out := shownFile{
			Path: f.Path, DestPath: f.Dest, Action: f.Action, BeforeHash: ptr(f.BeforeHash), AfterHash: ptr(f.AfterHash),
			BytesBefore: f.BytesBefore, BytesAfter: f.BytesAfter,
		}
		out.Diff, out.DiffTruncated = diff(f, edit.MaxDiff, &room)
		cut = cut || out.DiffTruncated
		files[i] = out
	}
	return files, cut
}

// diffedMax is the size in bytes of both sides together above which no difference is shown
// (contract 023).
const diffedMax = 2 << 20

// forDiff keeps what was there only while a difference can be shown.
func forDiff(before []byte) []byte {
	if len(before) > diffedMax {
		return nil
	}
	return before
}

// diff shows what changes in a file, in at most that many bytes and in what is left of the room.
func diff(f File, most int, room *int) (text string, cut bool) {
	before, after := f.before, f.after
	if f.Action != Move && (f.BytesBefore+f.BytesAfter > diffedMax || before == nil && f.BytesBefore > 0) {
		return "", true // what is not known must not look like nothing
	}
	switch f.Action {
	case Create:
		before, after = nil, filled(after)
	case Modify:
		before, after = filled(before), filled(after)
	case Delete:
		before, after = filled(before), nil
	default:
		return "", false
	}
	if *room <= 0 {
		return "", true
	}
	text, cut = edit.Diff(f.Path, before, after, most)
	for text != "" && op.EncodedLen(text) > *room {
		end := strings.LastIndexByte(text[:max(0, len(text)*3/4)], '\n') + 1
		text, cut = text[:end], true
	}
	*room -= op.EncodedLen(text)
	return text, cut
}

// filled is never nil: nil means that there is no file.
func filled(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func ptr(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// approvalBytes bounds the differences that the owner is shown before one change, as they stand
// in JSON. It is more than a model gets: the owner is asked to vouch for all of it.
const approvalBytes = 256 << 10

// An approvalFile is what the owner is shown before a change: the same for the same change,
// so that an approval stays good until it is used.
type approvalFile struct {
	Action        Action `json:"action"`
	Path          string `json:"path"`
	DestPath      string `json:"destPath,omitempty"`
	BeforeHash    string `json:"beforeHash,omitempty"`
	AfterHash     string `json:"afterHash,omitempty"`
	BytesBefore   int64  `json:"bytesBefore"`
	BytesAfter    int64  `json:"bytesAfter"`
	Diff          string `json:"diff,omitempty"`
	DiffTruncated bool   `json:"diffTruncated,omitempty"` // the owner's commands say so
}

func approval(p *Plan) []approvalFile {
	room := approvalBytes
	list := make([]approvalFile, len(p.Files))
	for i, f := range p.Files {
		list[i] = approvalFile{
			Action: f.Action, Path: f.Path, DestPath: f.Dest, BeforeHash: f.BeforeHash, AfterHash: f.AfterHash,
			BytesBefore: f.BytesBefore, BytesAfter: f.BytesAfter,
		}
		list[i].Diff, list[i].DiffTruncated = diff(f, approvalBytes, &room)
	}
	return list
}
